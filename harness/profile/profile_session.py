"""Session: what a profiler receives, and how it runs the cell's worker in a fresh process, separate from all timing."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zoomgrad.engines.api import Engine
from zoomgrad.harness import containment
from zoomgrad.harness.containment import Finished, Limits
from zoomgrad.harness.machine import environments
from zoomgrad.harness.machine.interpreters import Interpreter
from zoomgrad.harness.run import isolate
from zoomgrad.results.places import STATE
from zoomgrad.results.record import Cell

DRAW = isolate.Draw()
"""The same draw for all profiles, so that two profiles differ only in their cells."""
ENDING_SECONDS = 60.0
"""Extra time of a worker beyond the profiled time: start, preparation, and the profiler's own processing."""


GENERATED = STATE / "generated"
"""Folder for generated Python. Scalene shows only lines of files below the project."""


class NoProfile(Exception):
    """The profiler is missing, refuses the cell, or saw nothing. Holds the profile's status, reason and remedy."""

    def __init__(self, status: str, reason: str, remedy: str = "") -> None:
        super().__init__(f"{reason}\n  {remedy}")
        self.status = status
        self.reason = reason
        self.remedy = remedy


Run = Callable[[list[str], dict[str, str], str, Limits], Finished]
"""`containment.run`: the process boundary, which tests replace with a fake."""


@dataclass(frozen=True)
class Session:
    """One cell under one profiler."""

    cell: Cell
    engine: Engine
    interpreter: Interpreter
    seconds: float
    """How long to profile."""
    limits: Limits
    """Limits of a worker."""
    folder: Path
    """The cell's folder for files beside the profile."""
    run: Run = containment.run

    def python(self, lock: str = environments.WORKER) -> str:
        """Path of the Python in the environment with the lock file's packages. Raises NoEnvironment."""
        return str(environments.environment(self.interpreter, lock=lock))

    def work(
        self, command: Sequence[str], *, probe: str = "nothing", seconds: float | None = None, **variables: str
    ) -> dict[str, Any]:
        """Train the cell in a worker, and return its reply. Raises NoProfile with the worker's reason.

        command: runs WORKER, and gets the job's file as its last argument. seconds: duration, by default the session's.
        variables: of the worker's environment.
        """
        job = {
            "engine": self.cell.engine,
            "workload": self.cell.workload,
            "probe": probe,
            "seconds": self.seconds if seconds is None else seconds,
        }
        with tempfile.TemporaryDirectory(prefix="zoomgrad-", ignore_cleanup_errors=True) as folder:
            reply_file = Path(folder) / "reply.json"
            job_file = Path(folder) / "job.json"
            job_file.write_text(json.dumps({**job, "reply_file": str(reply_file)}), encoding="utf-8")
            self.folder.mkdir(parents=True, exist_ok=True)
            surroundings = {**isolate.worker_environment(DRAW), "ZOOMGRAD_GENERATED": str(GENERATED), **variables}
            start = time.perf_counter()
            finished = self.run([*command, str(job_file)], surroundings, folder, self.limits)
            worker_seconds = time.perf_counter() - start
            reply = isolate.reply_of(reply_file, "profile", finished, self.limits, self.cell.engine)
        if reply["status"] != "measured":
            raise NoProfile(reply["status"], reply["reason"], reply.get("remedy", ""))
        return {**reply, "worker_seconds": worker_seconds, "output": finished.output}


WORKER = ("-m", "zoomgrad.harness.worker.profiling.profile")
"""Arguments between the Python and the job's file."""

Profiler = Callable[[Session], dict[str, Any]]
"""Returns the fields of its Profile except those that `run_profilers` adds. Raises NoProfile."""


def common(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that every profile takes from a worker's reply."""
    return {key: reply[key] for key in ("steps", "seconds", "preparations", "worker_seconds")}
