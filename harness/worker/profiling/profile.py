"""Profile one cell: prepare its engine, train for a while, and read what the interpreter reports about itself.

`python -m zoomgrad.harness.worker.profiling.profile JOB` runs alone or under a profiler. Its times never go into a
record, because profiling slows the training down.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from time import perf_counter
from typing import Any, TextIO

from zoomgrad import engines
from zoomgrad.engines.api import Trainer
from zoomgrad.harness import workloads
from zoomgrad.harness.worker.job import ProfileJob, Reply, do_job, ready
from zoomgrad.harness.worker.profiling import anatomy, probes
from zoomgrad.harness.worker.profiling.probes import Probe, Subject, portions

PROBES: dict[str, Probe] = {
    "nothing": probes.nothing,
    "anatomy": anatomy.anatomy,
    "memory": probes.memory,
}
"""Value of a job's `probe` -> the probe."""


def profile(job: ProfileJob) -> Reply:
    """Prepare the engine, and train for the job's time under its probe. Switches an outside profiler on and off."""
    workload = workloads.load(job["workload"])
    engine = ready(job["engine"], workload)
    trainer = engine.prepare(workload)
    readings: dict[str, Any] = {}
    subject = Subject(trainer, workload, job["seconds"])
    with PROBES[job["probe"]](readings, subject), _observed():
        # Probes observe training only. Otherwise a JIT's figures would include traces through our own compilers.
        prepares = job["probe"] == "nothing"
        preparations, taken = exercise(engine, workload, trainer, job["seconds"], prepares=prepares)
    return {
        "status": "measured",
        "steps": sum(steps for steps, _ in taken),
        "seconds": sum(seconds for _, seconds in taken),
        "preparations": preparations,
        "pid": os.getpid(),
        "first_step_seconds": taken[0][1],
        "readings": readings,
    }


def exercise(
    engine: engines.Engine, workload: workloads.Workload, trainer: Trainer, seconds: float, *, prepares: bool
) -> tuple[int, list[tuple[int, float]]]:
    """Train for about `seconds`. With `prepares`, an engine that compiles prepares repeatedly for the first half.

    Returns the number of preparations, then steps and seconds of each portion.
    """
    preparations, end = 0, perf_counter() + seconds
    while prepares and trainer.phases and perf_counter() < end - seconds / 2:
        trainer = engine.prepare(workload)
        preparations += 1
    return preparations, portions(trainer, end - perf_counter())


@contextmanager
def _observed() -> Iterator[None]:
    """Switch an outside profiler on for the block. It must not see imports, which take as long as a short training."""
    scalene: Any = importlib.import_module("scalene.scalene_profiler") if "scalene" in sys.modules else None
    control = os.environ.get("ZOOMGRAD_PERF_CONTROL")
    with open(control, "w", encoding="ascii") if control else nullcontext() as perf:  # noqa: PTH123  (a pipe)
        if scalene:
            scalene.start()
        if perf:
            _tell(perf, "enable")
        try:
            yield
        finally:
            if perf:
                _tell(perf, "disable")
            if scalene:
                scalene.stop()


def _tell(perf: TextIO, word: str) -> None:
    perf.write(f"{word}\n")
    perf.flush()


if __name__ == "__main__":
    do_job(profile)
