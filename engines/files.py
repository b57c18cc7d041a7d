"""Files that are written atomically, where caches are, and private folders.

A private folder holds content by name, which nobody else could have changed, and which is verified when it is read.
The folder is used only if it is a folder, not a link, that belongs to this user and that others may not write to, so
only this user can put a file there. That protects against other users, not against programs of this user, which could
as well change zoomgrad. A file is a line with the SHA-256 of the rest, then the content, so damage by a crash or a disk
is noticed too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
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
    path: Union[str, Path], *parts: Union[str, bytes, memoryview], mode: int = 0o666, durable: bool = True
) -> None:
    """Create or replace a file: readers find the old one or the new one, and never half of one.

    mode: of the file, less the umask. durable: readers after a power cut too. Raises OSError, which names the path; the
    old file is unchanged then.
    """
    path = Path(path)
    draft = path.with_name(f".{os.urandom(8).hex()}{DRAFT}")
    try:
        descriptor = os.open(draft, _NEW, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for part in parts:
                    file.write(part.encode() if isinstance(part, str) else part)
                file.flush()
                if durable:
                    os.fsync(descriptor)
            draft.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    if durable:
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


class Unsound(Exception):
    """A file can't be trusted, so it was removed. The text is the reason."""


def put(folder: Path, name: str, *parts: bytes, most_bytes: Optional[int] = None) -> None:
    """Keep content, atomically. most_bytes: of all files together; the least recently used ones are removed.

    Raises OSError if the disk refuses it, and Unavailable if others could change the folder's files.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_private(folder)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    # If a crash truncates a file of a cache, its hash no longer matches, and its content is made again. That is
    # cheaper than a sync, which may take longer than to compile.
    durable = most_bytes is None
    first = f"{digest.hexdigest()}\n".encode()
    write_atomically(folder / f"{name}{SUFFIX}", first, *parts, mode=0o600, durable=durable)
    if most_bytes is not None:
        _shrink(folder, most_bytes)


def get(folder: Path, name: str, most_bytes: int) -> Optional[bytes]:
    """The content of that name; None if there is none. most_bytes: a longer file is refused.

    Raises Unavailable if others could change the folder's files, and Unsound for a file that can't be trusted.
    """
    path = folder / f"{name}{SUFFIX}"
    try:
        _check_private(folder)
        facts = path.lstat()
    except OSError:
        return None  # there is no such folder or file
    try:
        if not stat.S_ISREG(facts.st_mode):
            raise Unsound("not a regular file")
        if facts.st_size > most_bytes:
            raise Unsound(f"{facts.st_size:,} bytes")
        with contextlib.suppress(OSError):
            os.utime(path)
        digest, _, content = path.read_bytes().partition(b"\n")
        if digest.decode("latin-1") != hashlib.sha256(content).hexdigest():
            raise Unsound("its bytes do not match its hash")
        return content
    except FileNotFoundError:  # another process has removed it
        return None
    except (OSError, Unsound) as error:
        with contextlib.suppress(OSError):
            path.unlink()
        raise Unsound(str(error)) from None


def _check_private(folder: Path) -> None:
    """Raise OSError if there is no such folder, and Unavailable if others could change its files."""
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode):
        raise Unavailable(f"{folder} is a link or a file, so its files can't be trusted", "Remove it.")
    if facts.st_uid != os.getuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unavailable(
            f"{folder} belongs to another user, or others may write to it, so its files can't be trusted", "Remove it."
        )


def _shrink(folder: Path, most_bytes: int) -> None:
    """Remove the objects that have not been used for the longest time, until the rest have at most that size."""
    entries = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):  # another process has removed it
            facts = path.lstat()
            if path.name.endswith(DRAFT) and facts.st_mtime < time() - _DRAFT_SECONDS:
                path.unlink()
            elif _FILE.fullmatch(path.name):
                entries.append((facts.st_mtime_ns, facts.st_size, path))
    left = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if left <= most_bytes:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        left -= size
