"""One timing run per machine: a lock that every checkout and every user shares.

filelock locks a file outside all checkouts with `flock`. The system releases the lock when its holder dies, for any
reason, and the file is never written or removed.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from zoomgrad.engines.asking import one_line

LOCK = "ZOOMGRAD_LOCK"
"""Environment variable: another file to lock."""
WAITING_SECONDS = 2.0
"""Time between two attempts of a run that waits. More attempts would disturb the run that measures."""


class Busy(Exception):
    """Another run is measuring. The text names its holder, if known."""


def lock_file() -> Path:
    """The file that all runs of this machine lock. Not in TMPDIR, which on macOS differs from user to user."""
    return Path(os.environ.get(LOCK) or "/tmp/zoomgrad-measuring.lock")  # noqa: S108  (all users share it)


@contextlib.contextmanager
def locked(*, waiting: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the machine's lock.

    waiting: called once with the lock's holder before waiting for the lock. None: raise Busy instead of waiting.
    Raises OSError if the file can't be opened.
    """
    path = lock_file()
    lock = FileLock(path, mode=0o666, poll_interval=WAITING_SECONDS, fallback_to_soft=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if waiting is None:
            raise Busy(holder(path)) from None
        waiting(holder(path))
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def holder(path: Path) -> str:
    """`pid 123 (ada, since 10:02, `zoomgrad run` in /home/ada)`; empty if that is another user's process."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            opened = [file for file in process.open_files() if path.samefile(file.path)]
            if opened and process.pid != os.getpid():
                since = time.strftime("%H:%M", time.localtime(process.create_time()))
                command = one_line(" ".join(process.cmdline()), 200)
                return f"pid {process.pid} ({process.username()}, since {since}, `{command}` in {process.cwd()})"
    return ""
