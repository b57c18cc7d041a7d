"""Objects that were slow to compile, kept from one block of a run to its next, and verified before they are loaded.

Loading an object runs its constructors, and one that was cut short ends the process by SIGBUS. A kept object is one
file: a line with the SHA-256 of what follows, then the object. It is used only if the descriptor that it is read from
belongs to a regular file of ours, in a folder of ours, where nobody else may write, and if the hash is right. What is
loaded is a private copy of the bytes that were hashed: the file may change meanwhile. Anything else is removed, and the
object is compiled anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from engines.api import Unavailable
from engines.kernel.building import Built, private_folder, write

LARGEST_BYTES = 1 << 30
"""Fifty times the largest of the run in results/reference/full."""

SUFFIX = ".object"
_HASH_CHARACTERS = 64
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def keep(built: Built, folder: Path, name: str) -> None:
    """Put a copy of an object into a private folder, whole or not at all; a disk that refuses it is a warning.

    Raises Unavailable where others may write into the folder.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(_open_folder(folder))
        content = built.path.read_bytes()
        descriptor, draft = tempfile.mkstemp(prefix=f".{name}.", dir=folder)  # its mode is 0600
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(f"{hashlib.sha256(content).hexdigest()}\n".encode())
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(draft).replace(folder / f"{name}{SUFFIX}")
        except BaseException:
            Path(draft).unlink()
            raise
        _sync(folder)
    except OSError as error:
        warnings.warn(f"the object could not be kept, and is compiled in every block ({error})", stacklevel=2)


@contextlib.contextmanager
def kept(folder: Path, name: str) -> Iterator[Optional[Built]]:
    """A private copy of the object of that name, gone at the block's end; None where the folder has no sound one.

    Raises Unavailable where others may write into the folder.
    """
    content = _verified(folder, f"{name}{SUFFIX}")
    if content is None:
        yield None
        return
    with private_folder() as private:
        path = private / "program.so"
        write(path, content)
        yield Built(path, len(content))


def _verified(folder: Path, name: str) -> Optional[bytes]:
    """The object's bytes, from a descriptor that was looked at, and hashed; None where there are none to be trusted."""
    try:
        directory = _open_folder(folder)
    except OSError:
        return None  # it was never made
    try:
        return _read(directory, name)
    except FileNotFoundError:
        return None
    except (OSError, _Unsound) as error:
        warnings.warn(f"{folder / name} is not the object that was kept ({error}): compiled anew", stacklevel=2)
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=directory)
        return None
    finally:
        os.close(directory)


class _Unsound(Exception):
    """A file that is not a kept object: why."""


def _read(directory: int, name: str) -> bytes:
    # A FIFO would hold up who opens it, and a link would lead elsewhere.
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        _check(os.fstat(descriptor))
    except _Unsound:
        os.close(descriptor)
        raise
    with os.fdopen(descriptor, "rb") as file:
        promised = file.read(_HASH_CHARACTERS + 1)
        content = file.read(LARGEST_BYTES)
    if promised != f"{hashlib.sha256(content).hexdigest()}\n".encode():
        raise _Unsound("its bytes do not match its hash")
    return content


def _check(facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise _Unsound("not a regular file")
    if facts.st_uid != os.getuid() or facts.st_mode & _OTHERS_MAY_WRITE:
        raise _Unsound("somebody else's, or others may write to it")
    if facts.st_size > LARGEST_BYTES:
        raise _Unsound(f"{facts.st_size:,} bytes")


def _open_folder(folder: Path) -> int:
    """A descriptor of the folder. Raises OSError where there is none, and Unavailable where it is not ours alone."""
    if folder.is_symlink():
        raise Unavailable(f"{folder} is a link: the objects in it might be anybody's", "Remove it.")
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    facts = os.fstat(directory)
    if facts.st_uid == os.getuid() and not facts.st_mode & _OTHERS_MAY_WRITE:
        return directory
    os.close(directory)
    raise Unavailable(
        f"{folder} belongs to somebody else, or others may write there: code from it might be anybody's",
        f"Remove it, or run `chmod 700 {folder}`.",
    )


def _sync(folder: Path) -> None:
    """The rename is durable only once its folder is (POSIX)."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
