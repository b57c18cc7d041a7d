"""Profile one cell: prepare its engine, then train for a while under an observer.

`python -m zoomgrad.harness.worker.profile JOB` runs alone or under a profiler. Its times never go into a record,
because profiling slows the training down. The reply holds the fields of a profile, by their names in `results.profile`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from time import perf_counter
from typing import Any

from zoomgrad.engines.row import Row
from zoomgrad.engines.training import Trainer
from zoomgrad.harness import workloads
from zoomgrad.harness.worker.anatomy import anatomy, portions
from zoomgrad.harness.worker.job import ProfileJob, Reply, do_job, ready
from zoomgrad.harness.workloads import Workload


def profile(job: ProfileJob) -> Reply:
    """Prepare the engine, and train for the job's time. Switches an outside profiler on and off."""
    workload = workloads.load(job["workload"])
    engine = ready(job["engine"], workload)
    trainer = engine.prepare(workload)
    with _switched_on():
        if job["profiler"] == "anatomy":
            fields = anatomy(trainer, job["seconds"])
        else:
            fields = exercise(engine, workload, trainer, job["seconds"])
    return {"status": "measured", "fields": fields}


def exercise(engine: Row, workload: Workload, trainer: Trainer, seconds: float) -> dict[str, Any]:
    """Train for a profiler outside the process. An engine that compiles prepares repeatedly for the first half."""
    preparations, end = 0, perf_counter() + seconds
    while trainer.phases and perf_counter() < end - seconds / 2:
        trainer = engine.prepare(workload)
        preparations += 1
    steps, taken = map(sum, zip(*portions(trainer, end - perf_counter())))
    return {"steps": steps, "seconds": taken, "preparations": preparations}


@contextmanager
def _switched_on() -> Iterator[None]:
    """Switch an outside profiler on for the block. It must not see imports, which take as long as a short training."""
    scalene: Any = importlib.import_module("scalene.scalene_profiler") if "scalene" in sys.modules else None
    control = os.environ.get("ZOOMGRAD_PERF_CONTROL")
    # Line by line, because perf waits for each.
    with open(control, "w", 1, encoding="ascii") if control else nullcontext() as perf:  # noqa: PTH123  (a pipe)
        if scalene:
            scalene.start()
        if perf:
            perf.write("enable\n")
        try:
            yield
        finally:
            if perf:
                perf.write("disable\n")
            if scalene:
                scalene.stop()


if __name__ == "__main__":
    do_job(profile)
