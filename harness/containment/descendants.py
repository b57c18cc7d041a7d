"""Find and kill the processes that a worker left behind.

A worker begins a session, whose id its descendants share, and the environment variable `ZOOMGRAD_HARNESS` marks them.
A descendant that calls `setsid` and forks twice leaves the session. On Linux the harness is a *subreaper*: such an
orphan becomes a child of the harness, which kills and reaps it. Other systems have only the session and the mark.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import psutil

from zoomgrad.harness.worker.lifeline import HARNESS

PR_SET_CHILD_SUBREAPER = 36
ENDING_SECONDS = 10.0
"""How long the system may take to end killed processes."""


def adopt_orphans() -> None:
    """Make this process adopt the orphans among its descendants. Linux only."""
    if sys.platform == "linux":
        import ctypes  # other systems do not need it

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0)


def children() -> set[int]:
    """Children of this process, zombies included. Scans all processes, so do not call it while a worker is timing."""
    return {child.pid for child in psutil.Process().children()}


def end_orphans(known: Collection[int]) -> None:
    """Kill and reap every child except the known ones, including orphans that become children meanwhile.

    known: children of the harness that no worker started.
    """
    if sys.platform != "linux":
        return
    until = time.monotonic() + ENDING_SECONDS
    while time.monotonic() < until:
        strays = children() - set(known)
        if not strays:
            return
        for pid in strays:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.002)


def end_session(leader: int) -> None:
    """Kill the session's members. Otherwise a compiler, in a separate process group, could disturb a timing."""
    for pid in psutil.pids() if hasattr(os, "getsid") else ():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == leader:
                os.kill(pid, signal.SIGKILL)


def end_leftovers() -> int:
    """End this user's processes that work for a dead harness. Return how many there were.

    Their environment holds the harness's pid. Only the same user can write it.
    """
    ended: set[int] = set()
    until = time.monotonic() + ENDING_SECONDS
    while time.monotonic() < until:
        leftovers = list(_leftovers())
        if not leftovers:
            break
        for process in leftovers:
            ended.add(process.pid)
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(leftovers, timeout=1.0)
    return len(ended)


def _leftovers() -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid == os.getpid() or (hasattr(os, "getuid") and process.uids().real != os.getuid()):
                continue
            mark = process.environ().get(HARNESS, "")
            is_marked = mark.isascii() and mark.isdecimal() and len(mark) < 10 and _pids_of(process.pid) == _pids_of()
            if is_marked and not _lives(int(mark), process) and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def _lives(pid: int, worker: psutil.Process) -> bool:
    """Whether that process exists and is older than its worker. A younger one only has the pid of a dead harness."""
    with contextlib.suppress(psutil.NoSuchProcess):
        harness = psutil.Process(pid)
        return harness.status() != psutil.STATUS_ZOMBIE and harness.create_time() <= worker.create_time()
    return False


def _pids_of(pid: int | str = "self") -> int:
    """The namespace of the process's pids: a container has its own. 0 on a system without /proc."""
    return Path(f"/proc/{pid}/ns/pid").stat().st_ino if sys.platform == "linux" else 0
