"""Builds that no graph changes, such as Value in C: kept for later processes, and verified before they are loaded.

Loading an object runs its constructors, and a truncated one kills the process by SIGBUS. So a folder is used only if it
is a folder, not a link, that belongs to this user and that others may not write to. That protects against other users,
not against programs of this user, which could as well change zoomgrad. A file is a line with the SHA-256 of the rest,
then the content, so damage by a crash or a disk is noticed too. The file may change later, so we load a private copy of
the verified bytes. If a check fails, the object is built again. What is compiled from a graph is never kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import struct
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Optional

from zoomgrad.engines.files import cache_folder, write_atomically
from zoomgrad.engines.kernel.building import Built, private_folder, write

MOST_BYTES = 256 << 20
"""The size limit of an object. A longer file is refused."""
_SECONDS = struct.Struct("<d")
"""How long the build took, before the object's bytes."""


class Unsound(Exception):
    """A file or its folder can't be trusted. The text is the reason."""


@contextlib.contextmanager
def kept(name: str, recipe: Sequence[str], make: contextlib.AbstractContextManager[Built]) -> Iterator[Built]:
    """The object of that recipe in the user's cache; if there is none, a new one. It is removed at the block's end.

    name: the folder in the cache. recipe: everything that the object depends on. Its first part begins the file's
    name. make: builds the object, which is kept if the block ends without an exception, so if it could be loaded.
    """
    folder = cache_folder(name)
    digest = hashlib.sha256("\0".join(recipe).encode(errors="surrogateescape"))  # a path may be undecodable
    file = folder and folder / f"{recipe[0]}-{digest.hexdigest()[:32]}.object"
    content = None
    try:
        content = read(file) if file else None
    except Unsound as why:
        warnings.warn(f"{file} is not used ({why}): building it again", stacklevel=3)
    if content is not None:
        with private_folder() as private:
            path = private / "program.so"
            write(path, content[_SECONDS.size :])
            yield Built(path, len(content) - _SECONDS.size, *_SECONDS.unpack_from(content))
        return
    start = perf_counter()
    with make as built:
        seconds = _SECONDS.pack(perf_counter() - start)
        yield built
        if file:
            with contextlib.suppress(OSError, Unsound):
                keep(file, seconds + built.path.read_bytes())


def keep(file: Path, content: bytes) -> None:
    """Write a file. Raises OSError, and Unsound if others could change the folder's files."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_private(file.parent)
    digest = hashlib.sha256(content).hexdigest()
    # Not durable: to build again what a crash truncated is cheaper than a sync.
    write_atomically(file, f"{digest}\n", content, mode=0o600, durable=False)


def read(file: Path) -> Optional[bytes]:
    """The content of a file; None if there is none.

    Raises Unsound for a folder or a file that can't be trusted, and removes the file.
    """
    try:
        _check_private(file.parent)
        facts = file.lstat()
    except OSError:
        return None  # there is no such folder or file
    try:
        if not stat.S_ISREG(facts.st_mode):
            raise Unsound("not a regular file")
        if facts.st_size > MOST_BYTES:
            raise Unsound(f"{facts.st_size:,} bytes")
        digest, _, content = file.read_bytes().partition(b"\n")
        if digest.decode("latin-1") != hashlib.sha256(content).hexdigest():
            raise Unsound("its bytes do not match its hash")
        return content
    except FileNotFoundError:  # another process has removed it
        return None
    except (OSError, Unsound) as error:
        with contextlib.suppress(OSError):
            file.unlink()
        raise Unsound(str(error)) from None


def _check_private(folder: Path) -> None:
    """Raise OSError if there is no such folder, and Unsound if others could change its files."""
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode):
        raise Unsound("its folder is a link or a file: remove it")
    if facts.st_uid != os.getuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unsound("its folder belongs to another user, or others may write to it: remove it")
