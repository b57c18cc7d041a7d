"""What a profiler is given, and how it has the cell worked on meanwhile: in a fresh process, apart from all timing."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from engines.api import Engine
from harness import containment
from harness.containment import Finished, Limits
from harness.machine.interpreters import ROOT, Interpreter
from harness.run import isolate
from harness.worker.job import CountJob, ProfileJob
from results.record import Cell

DRAW = isolate.Draw()
"""One for all: what differs between two profiles is then the engine."""
ENDING_SECONDS = 60.0
"""What a worker may take beyond what it was asked to: start, preparation, and what the profiler makes of it."""


GENERATED = ROOT / ".zoomgrad" / "generated"
"""Where generated Python is written for a profiler: Scalene shows lines of files below the project only."""


class NoProfile(Exception):
    """A profiler that is missing, refuses, or saw nothing: a status, why, and what to do."""

    def __init__(self, status: str, reason: str, remedy: str = "") -> None:
        super().__init__(f"{reason}\n  {remedy}")
        self.status = status
        self.reason = reason
        self.remedy = remedy


class Run(Protocol):
    """Runs a command: the process boundary, where tests put a fake. `containment.run` is the real one."""

    def __call__(self, command: list[str], environment: dict[str, str], folder: str, limits: Limits) -> Finished: ...


@dataclass(frozen=True)
class Session:
    """One cell under one profiler: what the profiler is given."""

    cell: Cell
    engine: Engine
    interpreter: Interpreter
    python: Callable[[str], Path]
    """Lock -> the Python of the interpreter's environment with what that lock lists. Raises NoEnvironment."""
    seconds: float
    """How long to profile."""
    limits: Limits
    """A worker that takes more is ended."""
    folder: Path
    """The cell's own, for what is kept beside the profile."""
    run: Run = containment.run

    def work(
        self,
        command: Callable[[Path], Sequence[str]],
        *,
        probe: str = "nothing",
        seconds: float | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Have the cell worked on by a worker; gives its reply.

        command: from the job's file to what runs `harness.worker.profiling.profile` on it; relative paths in it are in
        a directory that is gone after this. seconds: how long, if not for the whole session. Raises NoProfile with the
        worker's own reason.
        """
        return self.answer(
            "profile",
            lambda reply_file: {
                "engine": self.cell.engine,
                "workload": self.cell.workload,
                "reply_file": reply_file,
                "probe": probe,
                "seconds": self.seconds if seconds is None else seconds,
                "folder": str(self.folder),
            },
            command,
            environment={"ZOOMGRAD_GENERATED": str(GENERATED), **(environment or {})},
        )

    def answer(
        self,
        task: str,
        job: Callable[[str], ProfileJob | CountJob],
        command: Callable[[Path], Sequence[str]],
        *,
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Have a worker do any job; gives its reply. Otherwise as `work`.

        task: the name of the worker's module. job: from the reply's file to the job.
        """
        with tempfile.TemporaryDirectory(prefix="zoomgrad-", ignore_cleanup_errors=True) as folder:
            reply_file = Path(folder) / "reply.json"
            job_file = Path(folder) / "job.json"
            job_file.write_text(json.dumps(job(str(reply_file))), encoding="utf-8")
            self.folder.mkdir(parents=True, exist_ok=True)
            surroundings = {**isolate.worker_environment(DRAW), **(environment or {})}
            start = time.perf_counter()
            finished = self.run(list(command(job_file)), surroundings, folder, self.limits)
            seconds = time.perf_counter() - start
            reply = isolate.reply_of(reply_file, task, finished, self.limits, self.cell.engine)
        if reply["status"] != "measured":
            raise NoProfile(reply["status"], reply["reason"], reply.get("remedy", ""))
        return {**reply, "worker_seconds": seconds, "output": finished.output}


WORKER = ("-m", "harness.worker.profiling.profile")
"""What follows a Python, and is followed by the job's file."""

Profiler = Callable[[Session], dict[str, Any]]
"""Gives the fields of its Profile except those that `run_profilers` adds. Raises NoProfile."""


def common(reply: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that every profile takes from a worker's reply."""
    return {key: reply[key] for key in ("steps", "seconds", "preparations", "worker_seconds")}
