"""Keep compiled objects for later processes, and verify them before loading.

A race keeps objects that are slow to compile from one block of a cell to the next. Users' commands and `compile` keep
objects in a cache of this user, which `of_user` describes. No race reads objects that were compiled from graphs there.
An object is named by everything that it depends on: its source, the compiler, the flags and the processor.

Loading an object runs its constructors, and a truncated one kills the process by SIGBUS. So it is used only
under the rules of `engines.files`. The file may change later, so we load a private copy of the verified bytes. If a
check fails, the object is compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Optional

from zoomgrad.engines import files
from zoomgrad.engines.api import Store, Unavailable
from zoomgrad.engines.kernel.building import Built, private_folder, write

LARGEST_BYTES = 1 << 30
"""Fifty times the largest object of the run in results/baseline_runs/full.jsonl.xz."""

USERS_FROM_SECONDS = 0.05
"""A shorter build takes about as long as to read and verify its object."""
USERS_MOST_BYTES = 256 << 20


def of_user(name: str = "objects", from_seconds: Optional[float] = None) -> Optional[Store]:
    """A folder of this user's cache; None if caches are off or have no folder.

    from_seconds: by default USERS_FROM_SECONDS.
    """
    folder = files.cache_folder(name)
    seconds = USERS_FROM_SECONDS if from_seconds is None else from_seconds
    return Store(folder, seconds, USERS_MOST_BYTES) if folder else None


@contextlib.contextmanager
def kept_or_built(
    store: Optional[Store],
    recipe: Callable[[], Sequence[str]],
    make: Callable[[], contextlib.AbstractContextManager[Built]],
) -> Iterator[Built]:
    """The object of that recipe in a store; if there is none, a new one. It is removed at the block's end.

    recipe: everything that the object depends on; it may take long to compute. Its first part is lower-case letters,
    which begin the file's name. make: builds the object. A new object is kept if its build took long enough for the
    store and the block ends without an exception, so if it could be loaded. Raises Unavailable if others may write to a
    race's folder.
    """
    if store and os.path.lexists(store.folder):
        content = _verified(store, _name(recipe()))
        if content is not None:
            with private_folder() as private:
                path = private / "program.so"
                write(path, content)
                yield Built(path, len(content), is_kept=True)
                return
    start = perf_counter()
    with make() as built:
        seconds = perf_counter() - start
        yield built
        if store and seconds > store.from_seconds:
            _keep(built, store, _name(recipe()))


def _name(recipe: Sequence[str]) -> str:
    """The name of an object: a hash of its recipe."""
    parts = ("an object alone", *recipe)  # older versions kept facts in the same file
    digest = hashlib.sha256("\0".join(parts).encode(errors="surrogateescape"))  # a path may be undecodable
    return f"{recipe[0]}-{digest.hexdigest()[:32]}"


def _keep(built: Built, store: Store, name: str) -> None:
    """Keep a copy of an object. If the disk refuses it, warn about a race's."""
    try:
        content = built.path.read_bytes()
        if store.most_bytes is None or len(content) <= store.most_bytes:
            files.put(store.folder, name, content, most_bytes=store.most_bytes)
    except Unavailable as error:
        _refuse(store, error)
    except OSError as error:
        if store.most_bytes is None:
            warnings.warn(f"the object could not be kept, so every block compiles it again ({error})", stacklevel=2)


def _refuse(store: Store, unsafe: Unavailable) -> None:
    """A race ends if others may write to its folder. A user can do without a cache."""
    if store.most_bytes is None:
        raise unsafe
    warnings.warn(f"objects are not kept: {unsafe}", stacklevel=3)


def _verified(store: Store, name: str) -> Optional[bytes]:
    """The kept object; None if there is none that can be trusted."""
    try:
        return files.get(store.folder, name, LARGEST_BYTES)
    except Unavailable as error:
        _refuse(store, error)
    except files.Unsound as why:
        where = store.folder / f"{name}{files.SUFFIX}"
        warnings.warn(f"{where} is not the object that was kept ({why}): compiling it again", stacklevel=2)
    return None
