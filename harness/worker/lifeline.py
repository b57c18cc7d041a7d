"""Ends a worker when its harness dies. Every worker calls `end_with_the_harness` first.

The harness may be killed at any moment, and a worker that went on would disturb the next run's timings. On Linux a
process can ask for a signal when its parent dies. Child processes do not inherit this setting, so pyperf's manager and
its worker each set it: when the harness dies, the manager is killed, and then the worker.

The signal is sent when the *thread* that started the process ends. The harness starts workers from its main thread.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from typing import Optional

HARNESS = "ZOOMGRAD_HARNESS"
"""Environment variable: the identity of the harness that a process works for."""

IDENTITY = re.compile(r"[1-9]\d{0,9}-\d+-\d+", re.ASCII)
"""What `identity` gives."""

PR_SET_PDEATHSIG = 1


def end_with_the_harness() -> None:
    """Have this process killed when its parent dies, and end it now where the harness has died already."""
    if sys.platform == "linux":
        import ctypes  # the other systems need not load it

        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    # A parent that died before the line above sends nothing. A profiler may stand between the harness and its worker,
    # so the question is about the harness, not about the parent.
    harness = os.environ.get(HARNESS)
    if harness and not lives(harness):
        os._exit(1)


def identity(pid: Optional[int] = None) -> str:
    """A process as `<pid>-<start>-<namespace>`, by default this one: the system gives a pid to another process later.

    The start is in ticks since the machine started, which a clock that is set does not move. A container has pids of
    its own: a namespace of them. Both are 0 where there is no /proc. Raises ProcessLookupError where there is no such
    process.
    """
    pid = os.getpid() if pid is None else pid
    return f"{pid}-{_start(pid)}-{_namespace()}"


def lives(identity_: str) -> bool:
    """Whether the process of that identity is there, and not a zombie. False for a text that is no identity.

    True for one of another container: nobody can tell from here.
    """
    if not IDENTITY.fullmatch(identity_):
        return False
    pid, start, namespace = identity_.split("-")
    try:
        return namespace != _namespace() or start == _start(int(pid))
    except ProcessLookupError:
        return False


def _namespace() -> str:
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)  # noqa: PTH116  (every worker's start pays for an import)
    except OSError:
        return "0"


def _start(pid: int) -> str:
    if sys.platform == "linux":
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  (every worker's start pays for an import)
                # The program's name, in parentheses, may hold anything. The state and 19 fields on is the start.
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            raise ProcessLookupError(pid) from None
        if not fields or fields[0] in (b"Z", b"X"):
            raise ProcessLookupError(pid)
        return fields[19].decode("ascii")
    if os.name == "posix":
        with contextlib.suppress(PermissionError):  # there, and somebody else's
            os.kill(pid, 0)
    return "0"
