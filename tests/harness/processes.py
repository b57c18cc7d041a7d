"""Processes that a test watches from outside."""

import contextlib
import time

import psutil


def is_running(pid):
    """Return whether the process exists and is not a zombie."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def wait_for(condition, seconds=30):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "the condition did not become true in time"
        time.sleep(0.02)
