"""End a worker when its harness dies. Every worker calls `end_with_the_harness` first.

The harness may be killed at any moment, and a surviving worker would disturb the next run's timings. On Linux a process
can request a signal for its parent's death. Child processes do not inherit this setting, so pyperf's manager and its
worker each set it: when the harness dies, the manager is killed, and then the worker.

The system sends the signal when the *thread* that started the process ends, so the harness starts workers from its
main thread.
"""

from __future__ import annotations

import os
import signal
import sys

HARNESS = "ZOOMGRAD_HARNESS"
"""Environment variable: the pid of the harness that a process works for."""

PR_SET_PDEATHSIG = 1


def end_with_the_harness() -> None:
    """Ask the system to kill this process when its parent dies. Exit now if the harness is already dead."""
    if sys.platform == "linux":
        import ctypes  # other systems do not need it

        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    # If the parent died before the line above, no signal comes. Ask about the harness, not the parent, because a
    # profiler may run between the harness and its worker.
    harness = os.environ.get(HARNESS, "")
    if harness.isdecimal():
        try:
            os.kill(int(harness), 0)
        except PermissionError:  # it exists, but belongs to another user
            pass
        except OSError:
            os._exit(1)
