"""Builds that no graph changes, such as Value in C: kept for later processes, and verified before they are loaded.

Loading an object runs its constructors, and a truncated one kills the process by SIGBUS. So a folder is used only if it
is a folder, not a link, that belongs to this user and that others may not write to. That protects against other users,
not against programs of this user, which could as well change zoomgrad. A file is a line with the SHA-256 of the rest,
then the content, so damage by a crash or a disk is noticed too. The file may change later, so we load a private copy of
the verified bytes. If a check fails, the object is built again, and replaces the file. What is compiled from a graph is
never kept.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Optional

from zoomgrad.engines.files import cache_folder, write_atomically
from zoomgrad.engines.kernel.building import private_folder, write

MOST_BYTES = 256 << 20
"""The size limit of an object. A longer file is refused."""
_SECONDS = struct.Struct("<d")
"""How long the build took, before the object's bytes."""


@contextmanager
def kept(name: str, recipe: Sequence[str], make: AbstractContextManager[Path]) -> Iterator[tuple[Path, float]]:
    """The path of that recipe's object, removed at the block's end, and the seconds of its build, or 0.0 if it is new.

    name: the folder in the user's cache. recipe: everything that the object depends on. Its first part begins the
    file's name. make: builds the object, which is kept only if the block raises nothing.
    """
    folder = cache_folder(name)
    digest = hashlib.sha256("\0".join(recipe).encode(errors="surrogateescape"))  # a path may be undecodable
    file = folder and folder / f"{recipe[0]}-{digest.hexdigest()[:32]}.object"
    content = read(file) if file else None
    if content is not None:
        with private_folder() as private:
            path = private / "program.so"
            write(path, content[_SECONDS.size :])
            yield path, _SECONDS.unpack_from(content)[0]
        return
    start = perf_counter()
    with make as path:
        seconds = _SECONDS.pack(perf_counter() - start)
        yield path, 0.0
        if file:
            with suppress(OSError):
                keep(file, seconds + path.read_bytes())


def keep(file: Path, content: bytes) -> None:
    """Write a file, unless others could change the folder's files. Raises OSError."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if _is_private(file.parent):
        # Not durable: to build again what a crash truncated is cheaper than a sync.
        write_atomically(file, f"{hashlib.sha256(content).hexdigest()}\n", content, mode=0o600, durable=False)


def read(file: Path) -> Optional[bytes]:
    """The content of a file; None if there is none that can be trusted."""
    try:
        facts = file.lstat()
        if not _is_private(file.parent) or not stat.S_ISREG(facts.st_mode) or facts.st_size > MOST_BYTES:
            return None
        digest, _, content = file.read_bytes().partition(b"\n")
    except OSError:
        return None
    if digest.decode("latin-1") != hashlib.sha256(content).hexdigest():
        return None
    return content


def _is_private(folder: Path) -> bool:
    """Whether it is a folder, not a link, whose files only this user could change. Raises OSError if there is none."""
    facts = folder.lstat()
    is_own = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()
    return is_own and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
