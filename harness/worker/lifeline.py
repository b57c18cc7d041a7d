"""End a worker when its harness dies. Every worker calls `end_with_the_harness` first.

The harness may be killed at any moment, and a surviving worker would disturb the next run's timings. On Linux a process
can request a signal for its parent's death. Child processes do not inherit this setting, so pyperf's manager and its
worker each set it: when the harness dies, the manager is killed, and then the worker.

The system sends the signal when the *thread* that started the process ends, so the harness starts workers from its
main thread.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from typing import Optional

HARNESS = "ZOOMGRAD_HARNESS"
"""Environment variable with the identity of the harness that a process works for."""

IDENTITY = re.compile(r"[1-9]\d{0,9}-\d+-\d+", re.ASCII)
"""Format of `identity`."""

PR_SET_PDEATHSIG = 1


def end_with_the_harness() -> None:
    """Ask the system to kill this process when its parent dies. Exit now if the harness is already dead."""
    if sys.platform == "linux":
        import ctypes  # other systems do not need it

        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    # If the parent died before the line above, no signal comes. Ask about the harness, not the parent, because a
    # profiler may run between the harness and its worker.
    harness = os.environ.get(HARNESS)
    if harness and not lives(harness):
        os._exit(1)


def identity(pid: Optional[int] = None) -> str:
    """Identity of a process, by default this one: `<pid>-<start>-<namespace>`. A pid alone may be reused.

    The start is in ticks since boot, so that setting the clock does not change it. The namespace is that of the pids,
    because a container has its own. Both are 0 on a system without /proc. Raises ProcessLookupError if the process does
    not exist.
    """
    pid = os.getpid() if pid is None else pid
    return f"{pid}-{_start(pid)}-{_namespace()}"


def lives(identity_: str) -> bool:
    """Whether the process of that identity exists and is not a zombie. False for malformed text.

    True for a process in another container, because this process cannot check it.
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
                # Split after the name in parentheses, which may contain anything. The fields are the state and, 19
                # fields later, the start.
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            raise ProcessLookupError(pid) from None
        if not fields or fields[0] in (b"Z", b"X"):
            raise ProcessLookupError(pid)
        return fields[19].decode("ascii")
    if os.name == "posix":
        with contextlib.suppress(PermissionError):  # it exists, but belongs to another user
            os.kill(pid, 0)
    return "0"
