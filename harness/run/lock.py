"""One timing run per machine: a lock that every checkout and every user shares.

The lock is `flock` on a file outside all checkouts. The system releases it when its holder dies, for any reason,
and the file is never removed: otherwise two runs could lock two files of the same name. The file says who holds the
lock. Any user may have written its text, so it is shortened and printed without markup.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from engines.asking import one_line

LOCK = "ZOOMGRAD_LOCK"
"""Environment variable: another file to lock."""

MOST_BYTES = 4096
"""Limit for reading the holder's description of itself."""


class Busy(Exception):
    """Another run is measuring. The text names its holder, if known."""


def lock_file() -> Path:
    """The file that all runs of this machine lock. Not in TMPDIR, which on macOS differs from user to user."""
    named = os.environ.get(LOCK)
    if named:
        return Path(named)
    common = os.environ.get("ALLUSERSPROFILE", "C:\\ProgramData") if sys.platform == "win32" else "/tmp"  # noqa: S108
    return Path(common) / "zoomgrad-measuring.lock"


@contextlib.contextmanager
def locked(command: Sequence[str], *, waiting: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the machine's lock while that command runs.

    waiting: called once with the lock's holder before waiting for the lock. None: raise Busy instead of waiting.
    Raises OSError if the file can't be opened or is not a regular file.
    """
    if sys.platform == "win32":
        with _locked_on_windows(waiting):
            yield
        return
    file = _open(lock_file())
    try:
        _lock(file, waiting)
        while not _is_the_lock(file):  # the file was removed while we waited
            os.close(file)
            file = _open(lock_file())
            _lock(file, waiting)
        _write(file, _introduction(command))
        try:
            yield
        finally:
            _write(file, b"")
    finally:
        os.close(file)


def _lock(file: int, waiting: Callable[[str], None] | None) -> None:
    import fcntl  # POSIX only

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _holder(file)
        if waiting is None:
            raise Busy(holder) from None
        waiting(holder)
        fcntl.flock(file, fcntl.LOCK_EX)  # sleeps, and Ctrl-C ends it


def _is_the_lock(file: int) -> bool:
    """Whether the lock's path still leads to this open file."""
    try:
        return os.path.samestat(os.fstat(file), lock_file().stat())
    except OSError:
        return False


def _open(path: Path) -> int:
    """Open the lock's file, or create it with write permission for all users. Raises OSError."""
    # Anybody may write to /tmp, so do not follow a link or block on a FIFO. Workers do not inherit the descriptor.
    flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    while True:
        try:
            # Without O_CREAT: Linux refuses that for another user's file in a sticky folder (fs.protected_regular).
            file = os.open(path, os.O_RDWR | flags)
        except FileNotFoundError:
            try:
                file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o666)
            except FileExistsError:
                continue  # another process was faster
            with contextlib.suppress(OSError):
                os.fchmod(file, 0o666)  # overrides the umask, because other users write to the file too
        except PermissionError:
            file = os.open(path, os.O_RDONLY | flags)  # enough for locking, but not for naming the holder
        break
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(f"{path} is not a regular file, so it can't be locked")
    return file


def _write(file: int, text: bytes) -> None:
    # A hard link may be a trap: somebody linked one of our own files here for us to overwrite.
    with contextlib.suppress(OSError):
        if os.fstat(file).st_nlink <= 1:
            os.ftruncate(file, 0)
            os.pwrite(file, text, 0)


def _introduction(command: Sequence[str]) -> bytes:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    facts = {
        "pid": os.getpid(),
        "user": user,
        "since": time.strftime("%H:%M"),
        "command": " ".join(command)[:500],
        "folder": str(Path.cwd())[:500],
    }
    return json.dumps(facts).encode()


def _holder(file: int) -> str:
    """`pid 123 (ada, since 10:02, `zoomgrad run` in /home/ada)`; empty if the file does not say."""
    try:
        facts = json.loads(os.pread(file, MOST_BYTES, 0))
        pid, user, since, command, folder = (
            one_line(str(facts[name]), 200) for name in ("pid", "user", "since", "command", "folder")
        )
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return ""
    return f"pid {pid} ({user}, since {since}, `{command}` in {folder})"


@contextlib.contextmanager
def _locked_on_windows(waiting: Callable[[str], None] | None) -> Iterator[None]:
    lock = FileLock(lock_file(), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        if waiting is None:
            raise Busy("") from None
        waiting("")
        lock.acquire(timeout=-1)
    try:
        yield
    finally:
        lock.release()
