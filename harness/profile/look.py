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
from harness import containment, isolate
from harness.containment import Finished, Limits
from harness.interpreters import ROOT, Interpreter
from harness.worker.job import CountJob, ProfileJob
from results.record import Cell

DRAW = isolate.Draw()
"""One for all: what differs between two profiles is then the engine."""
ENDING_SECONDS = 60.0
"""What a worker may take beyond what it was asked to: start, preparation, and what the profiler makes of it."""


GENERATED = ROOT / ".zoomgrad" / "generated"
"""Where generated Python is written while it is looked at: Scalene shows lines of files below the project only."""


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
class Look:
    """One cell under one profiler."""

    cell: Cell
    engine: Engine
    interpreter: Interpreter
    python: Callable[[str], Path]
    """Lock -> the Python of the interpreter's environment with what that lock lists. Raises NoEnvironment."""
    seconds: float
    """How long to look."""
    limits: Limits
    """A worker that takes more is ended."""
    folder: Path
    """The cell's own, for what is kept beside the profile."""
    run: Run = containment.run

    def work(
        self,
        command: Callable[[Path], Sequence[str]],
        *,
        watch: str = "nothing",
        seconds: float | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Have the cell worked on by a worker; gives its outcome.

        command: from the job's file to what runs `harness.worker.profile` on it; relative paths in it are in a
        directory that is gone after this. seconds: how long, if not for the whole look. Raises NoProfile with the
        worker's own reason.
        """
        return self.answer(
            "profile",
            lambda outcome_file: {
                "engine": self.cell.engine,
                "workload": self.cell.workload,
                "outcome_file": outcome_file,
                "watch": watch,
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
        """Have a worker do any job; gives its outcome. Otherwise as `work`.

        task: the name of the worker's module. job: from the outcome's file to the job.
        """
        with tempfile.TemporaryDirectory(prefix="zoomgrad-", ignore_cleanup_errors=True) as folder:
            outcome_file = Path(folder) / "outcome.json"
            job_file = Path(folder) / "job.json"
            job_file.write_text(json.dumps(job(str(outcome_file))), encoding="utf-8")
            self.folder.mkdir(parents=True, exist_ok=True)
            surroundings = {**isolate.worker_environment(DRAW), **(environment or {})}
            start = time.perf_counter()
            finished = self.run(list(command(job_file)), surroundings, folder, self.limits)
            seconds = time.perf_counter() - start
            outcome = isolate.outcome_of(outcome_file, task, finished, self.limits, self.cell.engine)
        if outcome["status"] != "measured":
            raise NoProfile(outcome["status"], outcome["reason"], outcome.get("remedy", ""))
        return {**outcome, "worker_seconds": seconds, "output": finished.output}


WORKER = ("-m", "harness.worker.profile")
"""What follows a Python, and is followed by the job's file."""

Profiler = Callable[[Look], dict[str, Any]]
"""Gives the fields of its Profile but for those that `look` adds. Raises NoProfile."""


def common(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that every profile takes from a worker's outcome."""
    return {key: outcome[key] for key in ("steps", "seconds", "preparations", "worker_seconds")}
