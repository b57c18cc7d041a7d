"""Run one command within limits, and end everything that it started, however the command ends.

While a worker is timing, the harness sleeps. The system wakes it when the worker ends, writes or runs out of time. The
harness counts processes rarely (`COUNTING_SECONDS`).
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from zoomgrad.engines.asking import NoAnswer, Programs, end_group
from zoomgrad.harness.containment import descendants
from zoomgrad.harness.containment.limits import Limits
from zoomgrad.harness.interrupts import uninterrupted

TAIL_CHARACTERS = 1500
"""Length of the end of a worker's output that is kept."""
COUNTING_SECONDS = 10.0
"""Time between two counts of processes. A count scans all processes, which takes a few milliseconds."""
NOT_STARTED = 127
"""Exit code of a command that can't be started, as of a shell."""


class Finished(NamedTuple):
    """How a command ended."""

    code: int | None
    """Exit code, negative for a signal; None if the command was ended at a limit."""
    output: str
    """End of the output of the command and its descendants."""
    limit: str = ""
    """Limit that was hit: `time`, `memory`, `output` or `processes`."""
    started_at_seconds: float = 0.0
    """Monotonic clock just before the command was started."""


def run(command: list[str], environment: dict[str, str], folder: str, limits: Limits) -> Finished:
    """Run the command in a new session in that folder, then end everything that it started.

    Call this from the main thread. The system kills a worker when the *thread* that started it ends.
    """

    def watch(pid: int) -> None:
        if _count(pid) > limits.most_processes:
            raise NoAnswer("had too many processes", limit="processes")

    descendants.adopt_orphans()
    known = descendants.children()
    # Limit memory that can be written, because a library may reserve more address space than it uses. Never dump a
    # core. A session: Ctrl-C reaches only us, and pyperf's worker ends with its manager.
    programs = Programs(
        *(limits.timeout_seconds, limits.output_bytes, Path(folder), environment),
        limits={"CORE": 0, "DATA": limits.memory_bytes},
        session=True,
        watch=watch,
        watch_seconds=COUNTING_SECONDS,
    )
    leader, started_at_seconds = 0, time.monotonic()
    try:
        leader = programs.start(command)
        (output,), code, limit = programs.finish(), 0, ""
    except NoAnswer as none:
        output, code, limit = none.output or none.reason, none.code, none.limit
    finally:
        with uninterrupted():
            programs.end()
            _end_others(leader, known)
    output = output.strip()
    tail = output if len(output) <= TAIL_CHARACTERS else f"…{output[-TAIL_CHARACTERS:]}"
    return Finished(None if limit else code if leader else NOT_STARTED, tail, limit, started_at_seconds)


def _count(pid: int) -> int:
    try:
        return 1 + len(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return 0


def end(process: subprocess.Popen[Any], known: set[int]) -> None:
    """Kill and reap a process that began a session, and everything that it started.

    known: children that the harness had before.
    """
    end_group(process)
    process.wait()
    _end_others(process.pid, known)


def _end_others(leader: int, known: set[int]) -> None:
    """End what is left of a session, and orphans. leader: its first process, 0 if it was not started."""
    if leader and sys.platform != "linux":
        descendants.end_session(leader)
    descendants.end_orphans(known)
