"""One timing run per machine: a lock that every checkout and every user shares.

filelock locks a file outside all checkouts with `flock`. The system releases the lock when its holder dies, for any
reason, and the file is never written or removed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

LOCK = "ZOOMGRAD_LOCK"
"""Environment variable: another file to lock."""
WAITING_SECONDS = 2.0
"""Time between two attempts of a run that waits. More attempts would disturb the run that measures."""


class Busy(Exception):
    """Another run is measuring."""


@contextlib.contextmanager
def locked(*, wait: bool) -> Iterator[None]:
    """Hold the machine's lock. wait: wait for it, instead of raising Busy. Also raises OSError."""
    # Not in TMPDIR, which on macOS differs from user to user.
    path = Path(os.environ.get(LOCK) or "/tmp/zoomgrad-measuring.lock")  # noqa: S108  (all users share it)
    lock = FileLock(path, mode=0o666, poll_interval=WAITING_SECONDS, fallback_to_soft=False)
    try:
        lock.acquire(timeout=-1 if wait else 0)
    except Timeout:
        remedy = "Wait for it with --wait. Two runs at a time would disturb each other's timings."
        raise Busy(f"another run is measuring; `lsof {path}` shows its process\n  {remedy}") from None
    try:
        yield
    finally:
        lock.release()
