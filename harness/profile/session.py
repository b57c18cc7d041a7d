"""Session: what a profiler receives, and how it runs the cell's worker in a fresh process, separate from all timing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zoomgrad.harness import containment
from zoomgrad.harness.containment import Run
from zoomgrad.harness.machine import environments
from zoomgrad.harness.machine.interpreters import Interpreter
from zoomgrad.harness.run import isolate
from zoomgrad.harness.run.replies import NoResult
from zoomgrad.harness.worker.job import ProfileJob
from zoomgrad.results.places import STATE
from zoomgrad.results.record import Cell, Settings

DRAW = 0
"""The same draw for all profiles, so that two profiles differ only in their cells."""

WORKER = ("-m", "zoomgrad.harness.worker.profile")
"""Arguments between the Python and the job's file."""

ENDING_SECONDS = 60.0
"""Extra time of a worker beyond the profiled time: start, preparation, and the profiler's own processing."""

GENERATED = STATE / "generated"
"""Folder for generated Python. Scalene shows only lines of files below the project."""


@dataclass(frozen=True)
class Session:
    """One cell under one profiler."""

    profiler: str
    cell: Cell
    interpreter: Interpreter
    seconds: float
    """How long to profile."""
    settings: Settings
    """With a worker's limits."""
    folder: Path
    """The cell's folder for files beside the profile."""
    run: Run = containment.run

    def python(self, lock: str = environments.WORKER) -> str:
        """Path of the Python in the environment with the lock file's packages. Raises NoEnvironment."""
        return str(environments.environment(self.interpreter, lock=lock))

    def work(self, command: Sequence[str], **variables: str) -> dict[str, Any]:
        """Train the cell in a worker, and return fields of its profile. Raises NoResult with the worker's reason.

        command: runs WORKER, and gets the job's file as its last argument. variables: of the worker's environment.
        """
        job: ProfileJob = {
            "engine": self.cell.engine,
            "workload": self.cell.workload,
            "profiler": self.profiler,
            "seconds": self.seconds,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        surroundings = {**isolate.worker_environment(DRAW), "ZOOMGRAD_GENERATED": str(GENERATED), **variables}
        with tempfile.TemporaryDirectory(prefix="zoomgrad-", ignore_cleanup_errors=True) as folder:
            timeout = max(self.settings.timeout_seconds, self.seconds + ENDING_SECONDS)
            settings = self.settings.model_copy(update={"timeout_seconds": timeout})
            reply, seconds, _ = isolate.work("profile", command, job, surroundings, folder, settings, self.run)
        if reply["status"] != "measured":
            raise NoResult(**reply)
        return {**reply["fields"], "worker_seconds": seconds}


Profiler = Callable[[Session], dict[str, Any]]
"""Returns the fields of its Profile except those that `profiled` adds. Raises NoResult."""


def observed(session: Session) -> dict[str, Any]:
    """Return what the worker observes without an outside profiler: the anatomy."""
    return session.work([session.python(), *WORKER])
