"""Keep compiled objects for later processes, and verify them before loading.

A race keeps objects that are slow to compile from one block of a cell to the next. Users' commands and `compile` keep
objects in a cache of this user, which `of_user` describes. No race reads objects that were compiled from graphs there.

Loading an object runs its constructors, and a truncated one kills the process by SIGBUS. A kept object is one file: a
line with the SHA-256 of the rest, a line of JSON with facts, then the object. It is used only if its hash is right,
under the rules of `own_files`. The file may change later, so we load a private copy of the hashed bytes. If a check
fails, the file is removed and the object compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from time import time
from types import MappingProxyType
from typing import Any, Optional

from engines import own_files
from engines.api import Store, Unavailable
from engines.kernel.building import Built, private_folder, write

LARGEST_BYTES = 1 << 30
"""Fifty times the largest object of the run in results/baseline_runs/full.jsonl.xz."""

SUFFIX = ".object"
_HASH_CHARACTERS = 64
_OBJECT = re.compile(rf"([a-z]+-)?[0-9a-f]{{32}}{re.escape(SUFFIX)}")
"""A file that may be removed from a cache. Anything else in its folder is not ours."""
_DRAFT_SECONDS = 3600.0
"""A draft that is older was left behind by a process that was killed."""


USERS_FROM_SECONDS = 0.05
"""A shorter build takes about as long as to read and verify its object."""
USERS_MOST_BYTES = 256 << 20


def of_user(name: str = "objects", from_seconds: Optional[float] = None) -> Optional[Store]:
    """A folder of this user's cache; None if caches are off or have no folder.

    from_seconds: by default USERS_FROM_SECONDS.
    """
    folder = own_files.cache_folder(name)
    seconds = USERS_FROM_SECONDS if from_seconds is None else from_seconds
    return Store(folder, seconds, USERS_MOST_BYTES) if folder else None


@cache
def code_signature() -> str:
    """What changes when this package's code does, which turns a graph into C: the facts of its files and the Python.

    Reading the files would take longer than most graphs. Their times of change can't be set, unlike those of content.
    """
    found, folders = [], [str(Path(__file__).parent.parent)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith((".py", ".c", ".h")):
                    facts = entry.stat()
                    found.append(f"{entry.path} {facts.st_size} {facts.st_mtime_ns} {facts.st_ctime_ns} {facts.st_ino}")
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return hashlib.sha256("\0".join([sys.version, *sorted(found)]).encode()).hexdigest()


def keep(built: Built, store: Store, name: str, facts: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Store a copy of an object, atomically. If the disk refuses it, warns about a race's.

    facts: names and values that JSON can hold. Raises Unavailable if others may write to a race's folder.
    """
    try:
        content = built.path.read_bytes()
        if store.most_bytes is not None and len(content) > store.most_bytes:
            return
        with own_files.opened(store.folder, make=True) as directory:
            content = f"{json.dumps(dict(facts))}\n".encode() + content
            digest = f"{hashlib.sha256(content).hexdigest()}\n".encode()
            # If a crash truncates a user's object, its hash no longer matches, and it is compiled again. That is
            # cheaper than a sync, which may take longer than to compile.
            own_files.write(directory, f"{name}{SUFFIX}", digest, content, sync=store.most_bytes is None)
            if store.most_bytes is not None:
                _shrink(directory, store.most_bytes)
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


def _shrink(directory: int, most_bytes: int) -> None:
    """Remove the objects that have not been used for the longest time, until the rest have at most that size."""
    found = []
    for name in os.listdir(directory):
        with contextlib.suppress(OSError):  # another process has removed it
            facts = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if name.startswith(own_files.DRAFT) and facts.st_mtime < time() - _DRAFT_SECONDS:
                os.unlink(name, dir_fd=directory)
            elif _OBJECT.fullmatch(name):
                found.append((facts.st_mtime_ns, facts.st_size, name))
    left = sum(size for _, size, _ in found)
    for _, size, name in sorted(found):
        if left <= most_bytes:
            return
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=directory)
        left -= size


@contextlib.contextmanager
def kept(store: Store, name: str) -> Iterator[Optional[Built]]:
    """A private copy of the object of that name, removed at the block's end; None if the folder has no valid one.

    Raises Unavailable if others may write to a race's folder.
    """
    content = _verified(store, f"{name}{SUFFIX}")
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
    """The file's bytes after the hash, if their descriptor and hash pass all checks; else None."""
    try:
        with own_files.opened(store.folder) as directory:
            return _checked(store, directory, name)
    except Unavailable as error:
        _refuse(store, error)
        return None
    except OSError:
        return None  # nothing was kept yet


def _checked(store: Store, directory: int, name: str) -> Optional[bytes]:
    try:
        content = own_files.read(directory, name, LARGEST_BYTES, used=store.most_bytes is not None)
        start = _HASH_CHARACTERS + 1
        if content[:start] != f"{hashlib.sha256(content[start:]).hexdigest()}\n".encode():
            raise own_files.Unsound("its bytes do not match its hash")
        if content[start : start + 1] != b"{":
            raise own_files.Unsound("it has no facts, so another version of zoomgrad wrote it")
        return content[start:]
    except FileNotFoundError:
        return None
    except (OSError, own_files.Unsound) as error:
        where = store.folder / name
        warnings.warn(f"{where} is not the object that was kept ({error}): compiling it again", stacklevel=2)
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=directory)
        return None
