"""Run one command within limits, and end everything that it started, however it ends.

A worker begins a session, and has limits of resources and of time. On Linux the harness is also a *subreaper*: a
descendant that leaves the session and loses its parent becomes a child of the harness, which kills and reaps it. The
worker asks to be killed when the harness dies (`harness/worker/lifeline.py`). macOS has the session only, and enforces
no limit of memory.

While a worker is timing, the harness sleeps: the system wakes it when the worker ends, writes or runs out of time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from zoomgrad.engines.asking import NoAnswer, Programs, end_group
from zoomgrad.harness.interrupts import uninterrupted
from zoomgrad.results.record import Settings

TAIL_CHARACTERS = 1500
"""Length of the end of a worker's output that is kept."""
NOT_STARTED = 127
"""Exit code of a command that can't be started, as of a shell."""
ENDING_SECONDS = 10.0
"""How long the system may take to end killed processes."""
PR_SET_CHILD_SUBREAPER = 36
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))


@dataclass(frozen=True)
class Limits:
    """Limits on a worker and all its descendants."""

    timeout_seconds: float
    memory_bytes: int = Settings().memory_bytes
    """Of the memory that each process can write."""
    output_bytes: int = Settings().output_bytes

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        return cls(settings.timeout_seconds, settings.memory_bytes, settings.output_bytes)

    def reply(self, limit: str) -> dict[str, str]:
        """Status, reason and remedy for the record of a worker that hit that limit."""
        memory, output = map(size, (self.memory_bytes, self.output_bytes))
        took = f"took longer than {self.timeout_seconds:g} s"
        status, reason, remedy = {
            "time": ("timed-out", took, "Raise the limit with --timeout, or leave the engine out."),
            "memory": ("failed", f"ran out of memory: its limit is {memory}", "Raise it with --memory."),
            "output": ("failed", f"wrote more than {output} of output", "Make the engine write less."),
        }[limit]
        return {"status": status, "reason": reason, "remedy": remedy, "limit": limit}


def size(count: int) -> str:
    """Format a number of bytes: `8 GiB`, `1.5 MiB`, `300 bytes`."""
    unit, name = next(pair for pair in _UNITS if count >= pair[0] or pair[0] == 1)
    return f"{count / unit:.4g} {name}"


class Finished(NamedTuple):
    """How a command ended."""

    code: int | None
    """Exit code, negative for a signal; None if the command was ended at a limit."""
    output: str
    """End of the output of the command and its descendants."""
    limit: str = ""
    """Limit that was hit: `time`, `memory` or `output`."""


Run = Callable[[list[str], dict[str, str], str, Limits], Finished]
"""`run`: the process boundary of profilers, which tests replace with a fake."""


def run(command: list[str], environment: dict[str, str], folder: str, limits: Limits) -> Finished:
    """Run the command in a new session in that folder, then end everything that it started.

    Call this from the main thread. The system kills a worker when the *thread* that started it ends.
    """
    known = adopt_orphans()
    # Limit memory that can be written, because a library may reserve more address space than it uses. Never dump a
    # core. A session: Ctrl-C reaches only us, and pyperf's worker ends with its manager.
    programs = Programs(
        *(limits.timeout_seconds, limits.output_bytes, Path(folder), environment),
        limits={"CORE": 0, "DATA": limits.memory_bytes},
        session=True,
    )
    leader = 0

    def end_all() -> None:
        with uninterrupted():
            programs.end()
            _end_others(leader, known)

    try:
        leader = programs.start(command)
        (output,), code, limit = programs.finish(), 0, ""
    except NoAnswer as none:
        output, code, limit = none.output or none.reason, none.code, none.limit
    finally:
        try:
            end_all()
        except KeyboardInterrupt:  # it may have come before the block began
            end_all()
            raise
    output = output.strip()
    tail = output if len(output) <= TAIL_CHARACTERS else f"…{output[-TAIL_CHARACTERS:]}"
    return Finished(None if limit else code if leader else NOT_STARTED, tail, limit)


def end(process: subprocess.Popen[Any], known: set[int]) -> None:
    """Kill and reap a process that began a session, and everything that it started.

    known: children that the harness had before, as `adopt_orphans` returned them.
    """
    end_group(process)
    process.wait()
    _end_others(process.pid, known)


def adopt_orphans() -> set[int]:
    """Make this process adopt the orphans among its descendants (Linux only). Returns the children that it has now."""
    if sys.platform == "linux":
        import ctypes  # other systems do not need it

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0)
    return _children()


def _children() -> set[int]:
    """Children of this process, zombies included. Scans all processes, so do not call it while a worker is timing."""
    return {child.pid for child in psutil.Process().children()}


def _end_others(leader: int, known: set[int]) -> None:
    """End what is left of a session, and orphans. leader: its first process, 0 if it was not started."""
    if sys.platform == "linux":
        _end_orphans(known)
        return
    for pid in psutil.pids() if leader and hasattr(os, "getsid") else ():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == leader:
                os.kill(pid, signal.SIGKILL)


def _end_orphans(known: set[int]) -> None:
    """Kill and reap every child except the known ones, including orphans that become children meanwhile."""
    until = time.monotonic() + ENDING_SECONDS
    while time.monotonic() < until and (strays := _children() - known):
        for pid in strays:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.002)
