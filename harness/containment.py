"""Run one command within limits, and end everything that it started, however it ends.

A worker begins a session, and has limits of resources and of time. The harness kills what is left of the session when
the worker ends, and the worker asks to be killed when the harness dies (`harness/worker/lifeline.py`). macOS enforces
no limit of memory.

While a worker is timing, the harness sleeps: the system wakes it when the worker ends, writes or runs out of time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil

from zoomgrad.engines.asking import NoAnswer, Programs
from zoomgrad.harness.interrupts import held
from zoomgrad.results.record import Settings

TAIL_CHARACTERS = 1500
"""Length of the end of a worker's output that is kept."""


def reply_at(limit: str, settings: Settings) -> dict[str, str]:
    """Status, reason and remedy for the record of a worker that hit that limit: `time`, `memory` or `output`."""
    took = f"took longer than {settings.timeout_seconds:g} s"
    memory = f"ran out of memory: its limit is {settings.memory_bytes / 2**30:.4g} GiB"
    output = f"wrote more than {settings.output_bytes:,} bytes"
    status, reason, remedy = {
        "time": ("timed-out", took, "Raise the limit with --timeout, or leave the engine out."),
        "memory": ("failed", memory, "Raise it with --memory."),
        "output": ("failed", output, "Make the engine write less."),
    }[limit]
    return {"status": status, "reason": reason, "remedy": remedy, "limit": limit}


class Finished(NamedTuple):
    """How a command ended."""

    code: int | None
    """Exit code, negative for a signal; None if the command was ended at a limit."""
    output: str
    """End of the output of the command and its descendants."""
    limit: str = ""
    """Limit that was hit, as for `reply_at`."""


Run = Callable[[list[str], dict[str, str], str, Settings], Finished]
"""`run`: the process boundary of profilers, which tests replace with a fake."""


def run(command: list[str], environment: dict[str, str], folder: str, settings: Settings) -> Finished:
    """Run the command in a new session in that folder, within limits, then end everything that it started.

    Call this from the main thread. The system kills a worker when the *thread* that started it ends.
    """
    # Limit memory that can be written, because a library may reserve more address space than it uses. Never dump a
    # core. A session: Ctrl-C reaches only us, and pyperf's worker ends with its manager.
    limits = {"CORE": 0, "DATA": settings.memory_bytes}
    leader = 0
    try:
        with Programs(
            settings.timeout_seconds, settings.output_bytes, Path(folder), environment, limits, session=True
        ) as programs:
            with held():
                leader = programs.start(command)
            output, code, limit = programs.finish(), 0, ""
    except NoAnswer as none:
        output, code, limit = none.output or none.reason, none.code, none.limit
        if not leader:
            code = 127  # a shell's code for a command that can't be started
    finally:
        if leader:
            end_session(leader)
    output = output.strip()
    tail = output if len(output) <= TAIL_CHARACTERS else f"…{output[-TAIL_CHARACTERS:]}"
    return Finished(None if limit else code, tail, limit)


@held()
def end_session(leader: int) -> None:
    """Kill every process of a worker's session, also compilers, which have process groups of their own.

    Wait until they have ended, because a process that still frees its memory would disturb the next timing.
    """
    members = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):  # it has already ended
            if os.getsid(pid) == leader:
                members.append(psutil.Process(pid))
                members[-1].kill()
    psutil.wait_procs(members, timeout=5)  # a limit, because without init nobody collects dead processes
