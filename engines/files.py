"""Files that are written atomically, and where caches are."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Optional, Union

CACHE = "ZOOMGRAD_CACHE"
"""Environment variable: the folder of all caches, or `off`, which switches off what can be computed again."""

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
    draft = path.with_name(f".{os.urandom(8).hex()}.draft")
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
    """Flush renames in the folder to the disk."""
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
