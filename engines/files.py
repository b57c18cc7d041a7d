"""Files that are written atomically, where caches are, and private folders.

A private folder holds content by name, which nobody else could have changed, and which is verified when it is read.
The folder is used only if it is a folder, not a link, that belongs to this user and that others may not write to. The
same holds for each file in it. These checks use open descriptors, so a folder or file that is replaced meanwhile is not
used. They protect against other users, not against programs of this user, which could as well change zoomgrad. A file
is a line with the SHA-256 of the rest, then the content, so damage by a crash or a disk is noticed too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from time import time
from typing import Optional, Union

from zoomgrad.engines.api import Unavailable

CACHE = "ZOOMGRAD_CACHE"
"""Environment variable: the folder of all caches, or `off`, which switches off what can be computed again."""

DRAFT = ".draft"
"""Ends the name of a file that is being written."""

# Without O_EXCL and O_NOFOLLOW, a link planted at the draft's path would redirect the write to its target.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | sum(getattr(os, f"O_{n}", 0) for n in ("NOFOLLOW", "CLOEXEC", "BINARY"))


def write_atomically(
    path: Union[str, Path],
    *parts: Union[str, bytes, memoryview],
    mode: int = 0o666,
    durable: bool = True,
    directory: Optional[int] = None,
) -> None:
    """Create or replace a file: readers find the old one or the new one, and never half of one.

    mode: of the file, less the umask. durable: readers after a power cut too. directory: a descriptor of the folder, of
    which `path` is then a name. Raises OSError, which names the path; the old file is unchanged then.
    """
    path = Path(path)
    draft = path.with_name(f".{os.urandom(8).hex()}{DRAFT}")
    try:
        descriptor = os.open(draft, _NEW, mode, dir_fd=directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for part in parts:
                    file.write(part.encode() if isinstance(part, str) else part)
                file.flush()
                if durable:
                    os.fsync(descriptor)
            os.replace(draft, path, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft, dir_fd=directory)
            raise
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    if durable and directory is not None:
        os.fsync(directory)  # POSIX requires it to make the rename durable
    elif durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush renames in the folder to the disk (POSIX). Windows can't open a folder, so nothing happens there."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def cache_folder(name: str, *, of_data: bool = False) -> Optional[Path]:
    """That folder below $ZOOMGRAD_CACHE, $XDG_CACHE_HOME/zoomgrad or ~/.cache/zoomgrad. It may not exist yet.

    of_data: for data that can't be computed again. None for a relative path and without a home folder; for anything but
    data, also if caches are off, and on a system without owners of files.
    """
    own = os.environ.get(CACHE, "")
    if not of_data and (own == "off" or os.name != "posix"):
        return None
    shared = os.environ.get("XDG_CACHE_HOME", "")
    try:
        if own and own != "off":
            folder = Path(own).expanduser()
        elif Path(shared).is_absolute():  # the XDG specification requires that relative paths are ignored
            folder = Path(shared, "zoomgrad")
        else:
            home = "HOME" if os.name == "posix" else "USERPROFILE"
            folder = Path(os.environ.get(home, ""), ".cache", "zoomgrad")
    except RuntimeError:  # no such user
        return None
    return folder / name if folder.is_absolute() else None


# --- private folders --------------------------------------------------------------------------------------------------

SUFFIX = ".object"
_FILE = re.compile(rf"([a-z]+-)?[0-9a-f]{{32}}{re.escape(SUFFIX)}")
"""A file that may be removed to make room. Anything else in the folder is not ours."""
_DRAFT_SECONDS = 3600.0
"""A draft that is older was left behind by a process that was killed."""
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Unsound(Exception):
    """A file can't be trusted, so it was removed. The text is the reason."""


def put(folder: Path, name: str, *parts: bytes, most_bytes: Optional[int] = None) -> None:
    """Keep content, atomically. most_bytes: of all files together; the least recently used ones are removed.

    Raises OSError if the disk refuses it, and Unavailable if others could change the folder's files.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    with _opened(folder) as directory:
        # If a crash truncates a file of a cache, its hash no longer matches, and its content is made again. That is
        # cheaper than a sync, which may take longer than to compile.
        first = f"{digest.hexdigest()}\n".encode()
        durable = most_bytes is None
        write_atomically(f"{name}{SUFFIX}", first, *parts, mode=0o600, durable=durable, directory=directory)
        if most_bytes is not None:
            _shrink(directory, most_bytes)


def get(folder: Path, name: str, most_bytes: int) -> Optional[bytes]:
    """The content of that name; None if there is none. most_bytes: a longer file is refused.

    Raises Unavailable if others could change the folder's files, and Unsound for a file that can't be trusted.
    """
    try:
        with _opened(folder) as directory:
            try:
                digest, _, content = _read(directory, f"{name}{SUFFIX}", most_bytes).partition(b"\n")
                if digest.decode("latin-1") != hashlib.sha256(content).hexdigest():
                    raise Unsound("its bytes do not match its hash")
                return content
            except FileNotFoundError:
                return None
            except (OSError, Unsound) as error:
                with contextlib.suppress(OSError):
                    os.unlink(f"{name}{SUFFIX}", dir_fd=directory)
                raise Unsound(str(error)) from None
    except OSError:
        return None  # there is no such folder


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """A descriptor of the folder. Raises OSError if it can't be opened, and Unavailable if others could change it."""
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


def _read(directory: int, name: str, most_bytes: int) -> bytes:
    """The content of a file in an opened folder. Sets its time of last change to now. Raises OSError and Unsound."""
    # These flags stop a FIFO from blocking us, and a link from leading elsewhere.
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise Unsound("not a regular file")
        if facts.st_uid != os.getuid() or facts.st_mode & _OTHERS_MAY_WRITE:
            raise Unsound("another user owns it or may write to it")
        if facts.st_size > most_bytes:
            raise Unsound(f"{facts.st_size:,} bytes")
        with contextlib.suppress(OSError):
            os.utime(descriptor)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most_bytes)
    finally:
        os.close(descriptor)


def _shrink(directory: int, most_bytes: int) -> None:
    """Remove the objects that have not been used for the longest time, until the rest have at most that size."""
    found = []
    for name in os.listdir(directory):
        with contextlib.suppress(OSError):  # another process has removed it
            facts = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if name.endswith(DRAFT) and facts.st_mtime < time() - _DRAFT_SECONDS:
                os.unlink(name, dir_fd=directory)
            elif _FILE.fullmatch(name):
                found.append((facts.st_mtime_ns, facts.st_size, name))
    left = sum(size for _, size, _ in found)
    for _, size, name in sorted(found):
        if left <= most_bytes:
            return
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=directory)
        left -= size
