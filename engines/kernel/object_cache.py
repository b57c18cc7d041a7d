"""Keep compiled objects for later processes, and verify them before loading.

A race keeps objects that are slow to compile from one block of a cell to the next. Users' commands and `compile` keep
objects in a cache of this user, which `of_user` describes. No race reads objects that were compiled from graphs there.

Loading an object runs its constructors, and a truncated one kills the process by SIGBUS. So it is used only
under the rules of `engines.files`. Its file holds a line of JSON with facts, then the object. The file may change
later, so we load a private copy of the verified bytes. If a check fails, the object is compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import time_ns
from types import MappingProxyType
from typing import Any, Optional

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


_SINCE_NS = time_ns() - 2_000_000_000
"""Two seconds before this module was imported, as the clocks of file systems are coarse."""


def code_signature() -> str:
    """A hash that changes with this package's code and with Python: name, size, times and inode of each source file.

    Empty if a file has changed since this process imported it, so that nobody knows which code the process runs, or if
    one can't be read. Hashing the contents would take longer than compiling most graphs. A program can set a file's
    time of modification, but not that of its last change.
    """
    root = Path(__file__).parent.parent
    parts = [sys.version, str(root)]
    try:
        for folder, folders, names in os.walk(root, onerror=_raise):
            folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
            for name in sorted(name for name in names if name.endswith((".py", ".c", ".h")) and name[0] != "."):
                facts = os.lstat(os.path.join(folder, name))  # noqa: PTH118  (Path objects take longer than lstat)
                if max(facts.st_ctime_ns, facts.st_mtime_ns) >= _SINCE_NS:
                    return ""
                parts.append(f"{folder}/{name} {facts.st_size} {facts.st_mtime_ns} {facts.st_ctime_ns} {facts.st_ino}")
    except OSError:
        return ""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()


def _raise(error: OSError) -> None:
    raise error


def keep(built: Built, store: Store, name: str, facts: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Keep a copy of an object, unless its name is empty. If the disk refuses it, warns about a race's.

    facts: names and values that JSON can hold. Raises Unavailable if others may write to a race's folder.
    """
    try:
        content = built.path.read_bytes() if name else b""
        if content and (store.most_bytes is None or len(content) <= store.most_bytes):
            first = f"{json.dumps(dict(facts))}\n".encode()
            files.put(store.folder, name, first, content, most_bytes=store.most_bytes)
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


@contextlib.contextmanager
def kept(store: Store, name: str) -> Iterator[Optional[Built]]:
    """A private copy of the object of that name, removed at the block's end; None if the folder has no valid one.

    Raises Unavailable if others may write to a race's folder.
    """
    content = _verified(store, name) if name else None
    if content is None:
        yield None
        return
    facts, _, content = content.partition(b"\n")
    with private_folder() as private:
        path = private / "program.so"
        write(path, content)
        yield Built(path, len(content), json.loads(facts))


@contextlib.contextmanager
def kept_or_built(
    folder: str, recipe: Sequence[str], make: Callable[[], contextlib.AbstractContextManager[Built]]
) -> Iterator[Built]:
    """The object of that recipe in a folder of this user's cache; if there is none, a new one.

    make: builds it. A new object is kept if the block ends without an exception, so if it could be loaded. The first
    part of a recipe is lower-case letters, which begin the file's name.
    """
    digest = hashlib.sha256("\0".join(recipe).encode()).hexdigest()
    name = f"{recipe[0]}-{digest[:32]}"
    store = of_user(folder, from_seconds=0.0)
    if store:
        with kept(store, name) as found:
            if found:
                yield found
                return
    with make() as built:
        yield built
        if store:
            keep(built, store, name)


def _verified(store: Store, name: str) -> Optional[bytes]:
    """The facts and the object; None if none is kept, or none that can be trusted."""
    try:
        return files.get(store.folder, name, LARGEST_BYTES)
    except Unavailable as error:
        _refuse(store, error)
    except files.Unsound as why:
        where = store.folder / f"{name}{files.SUFFIX}"
        warnings.warn(f"{where} is not the object that was kept ({why}): compiling it again", stacklevel=2)
    return None
