"""Keep slow-to-compile objects from one block of a run to the next, and verify them before loading.

Loading an object runs its constructors, and a truncated one kills the process by SIGBUS. A kept object is one file: a
line with the SHA-256 of the rest, then the object. It is used only if its hash is right, and if it is a regular file in
a folder, both of which belong to this user and are not writable by others. These checks use the open descriptor. The
file may change later, so we load a private copy of the hashed bytes. If a check fails, the file is removed and the
object compiled again.
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
"""Fifty times the largest object of the run in results/baseline_runs/full.jsonl.xz."""

SUFFIX = ".object"
_HASH_CHARACTERS = 64
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def keep(built: Built, folder: Path, name: str) -> None:
    """Store a copy of an object in a private folder, atomically. Warns if the disk refuses it.

    Raises Unavailable if others may write to the folder.
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
        warnings.warn(f"the object could not be kept, so every block compiles it again ({error})", stacklevel=2)


@contextlib.contextmanager
def kept(folder: Path, name: str) -> Iterator[Optional[Built]]:
    """A private copy of the object of that name, removed at the block's end; None if the folder has no valid one.

    Raises Unavailable if others may write to the folder.
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
    """The object's bytes, if their descriptor and hash pass all checks; else None."""
    try:
        directory = _open_folder(folder)
    except OSError:
        return None  # nothing was kept yet
    try:
        return _read(directory, name)
    except FileNotFoundError:
        return None
    except (OSError, _Unsound) as error:
        warnings.warn(f"{folder / name} is not the object that was kept ({error}): compiling it again", stacklevel=2)
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=directory)
        return None
    finally:
        os.close(directory)


class _Unsound(Exception):
    """A file is not a kept object. The text is the reason."""


def _read(directory: int, name: str) -> bytes:
    # These flags stop a FIFO from blocking us, and a link from leading elsewhere.
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
        raise _Unsound("another user owns it or may write to it")
    if facts.st_size > LARGEST_BYTES:
        raise _Unsound(f"{facts.st_size:,} bytes")


def _open_folder(folder: Path) -> int:
    """Open the folder. Raises OSError if it does not exist, and Unavailable if others may write to it."""
    if folder.is_symlink():
        raise Unavailable(f"{folder} is a link, so its objects can't be trusted", "Remove it.")
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    facts = os.fstat(directory)
    if facts.st_uid == os.getuid() and not facts.st_mode & _OTHERS_MAY_WRITE:
        return directory
    os.close(directory)
    raise Unavailable(
        f"{folder} belongs to another user, or others may write to it, so its objects can't be trusted",
        f"Remove it, or run `chmod 700 {folder}`.",
    )


def _sync(folder: Path) -> None:
    """Make a rename durable: POSIX requires an fsync of the folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
