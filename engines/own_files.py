"""Private files in folders of this user: written atomically, and read only if nobody else could have changed them.

A folder is used only if it is a folder, not a link, that belongs to this user and that others may not write to; the
same holds for each file in it. These checks use open descriptors, so a folder or file that is replaced meanwhile is not
used. They protect against other users, but not against programs of the same user, which could as well change zoomgrad.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from engines.api import Unavailable

CACHE = "ZOOMGRAD_CACHE"
"""Environment variable: the folder of all caches, or `off`, which switches those of this package off."""

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Unsound(Exception):
    """A file can't be trusted. The text is the reason."""


def cache_folder(name: str) -> Optional[Path]:
    """That folder below $ZOOMGRAD_CACHE, $XDG_CACHE_HOME/zoomgrad or ~/.cache/zoomgrad. It may not exist yet.

    None if caches are off, for a relative path, without a home folder, and on a system without owners of files.
    """
    own = os.environ.get(CACHE, "")
    if own == "off" or os.name != "posix":
        return None
    # The XDG specification requires that relative paths are ignored.
    shared = os.environ.get("XDG_CACHE_HOME", "")
    home = os.environ.get("HOME", "")
    try:
        if own:
            folder = Path(own).expanduser()
        else:
            folder = (Path(shared) if os.path.isabs(shared) else Path(home, ".cache")) / "zoomgrad"  # noqa: PTH117
    except RuntimeError:  # no such user
        return None
    return folder / name if folder.is_absolute() else None


@contextlib.contextmanager
def opened(folder: Path, *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder. make: create it with mode 0700 if it is missing.

    Raises OSError if it can't be opened, and Unavailable if others could change its files.
    """
    if make:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink():
        raise Unavailable(f"{folder} is a link, so its files can't be trusted", "Remove it.")
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        facts = os.fstat(directory)
        if facts.st_uid != os.getuid() or facts.st_mode & _OTHERS_MAY_WRITE:
            raise Unavailable(
                f"{folder} belongs to another user, or others may write to it, so its files can't be trusted",
                f"Remove it, or run `chmod 700 {folder}`.",
            )
        yield directory
    finally:
        os.close(directory)


def read(directory: int, name: str, most_bytes: int, *, used: bool = False) -> bytes:
    """The content of a file in an opened folder. used: also set its time of last change to now.

    Raises OSError and Unsound.
    """
    # These flags stop a FIFO from blocking us, and a link from leading elsewhere.
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        _check(os.fstat(descriptor), most_bytes)
        if used:
            with contextlib.suppress(OSError):
                os.utime(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most_bytes)


def _check(facts: os.stat_result, most_bytes: int) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise Unsound("not a regular file")
    if facts.st_uid != os.getuid() or facts.st_mode & _OTHERS_MAY_WRITE:
        raise Unsound("another user owns it or may write to it")
    if facts.st_size > most_bytes:
        raise Unsound(f"{facts.st_size:,} bytes")


DRAFT = ".draft-"
"""Prefix of a file that is being written."""


def write(directory: int, name: str, *parts: bytes, sync: bool = False) -> None:
    """Create or replace a file of mode 0600 in an opened folder, atomically. sync: make it durable. Raises OSError."""
    draft = f"{DRAFT}{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o600, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for part in parts:
                file.write(part)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=directory)
        raise
    if sync:
        os.fsync(directory)  # POSIX requires it to make the rename durable
