"""Processes that a test watches from outside."""

import contextlib
import signal
import time

import psutil

from zoomgrad.harness.worker.lifeline import HARNESS


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


def processes_of(harness):
    """Processes that work for that harness, as the mark in their environment says."""
    processes = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            is_marked = process.environ().get(HARNESS) == str(harness)
            if is_marked and process.status() != psutil.STATUS_ZOMBIE:
                processes.append(process)
    return processes


def obey_signals():
    """Handle signals as in a terminal; under `nohup` or in the background, some are ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
