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
from pathlib import Path
from time import perf_counter
from typing import Any, Callable, TextIO

from zoomgrad.engines import Engine, Unavailable
from zoomgrad.engines.api import Trainer
from zoomgrad.harness import workloads
from zoomgrad.harness.worker.anatomy import anatomy, portions
from zoomgrad.harness.worker.job import ProfileJob, Reply, do_job, ready
from zoomgrad.harness.workloads import Workload

SAMPLES = 300
"""Approximate number of readings of the resident memory."""
ENOUGH_STEPS, LONGEST = 24, 4.0
"""Least number of steps, and how long the training may be extended to reach it, as a multiple of its planned time. In
the first steps the heap has not yet grown to its working size."""
WARM_UP = 0.25
"""Warm-up of the memory as a share of the time, unless the first step takes longer."""
STATM = Path("/proc/self/statm")


def profile(job: ProfileJob) -> Reply:
    """Prepare the engine, and train for the job's time. Switches an outside profiler on and off."""
    workload = workloads.load(job["workload"])
    engine = ready(job["engine"], workload)
    trainer = engine.prepare(workload)
    with _switched_on():
        if job["profiler"] in OBSERVERS:
            fields = OBSERVERS[job["profiler"]](trainer, job["seconds"])
        else:
            fields = exercise(engine, workload, trainer, job["seconds"])
    return {"status": "measured", "fields": fields}


def exercise(engine: Engine, workload: Workload, trainer: Trainer, seconds: float) -> dict[str, Any]:
    """Train for a profiler outside the process. An engine that compiles prepares repeatedly for the first half."""
    preparations, end = 0, perf_counter() + seconds
    while trainer.phases and perf_counter() < end - seconds / 2:
        trainer = engine.prepare(workload)
        preparations += 1
    steps, taken = map(sum, zip(*portions(trainer, end - perf_counter())))
    return {"steps": steps, "seconds": taken, "preparations": preparations}


def memory(trainer: Trainer, seconds: float) -> dict[str, Any]:
    """Read the process's resident bytes before the first step, and then after a few steps each time."""
    if not STATM.exists():
        raise Unavailable(f"there is no {STATM}, which reports memory", "Profile on Linux.")
    start, before = perf_counter(), len(trainer.losses)
    points = [{"seconds": 0.0, "resident_bytes": resident_bytes()}]
    timed: list[tuple[int, float]] = []
    while (elapsed := points[-1]["seconds"]) < seconds or (
        len(trainer.losses) - before < ENOUGH_STEPS and elapsed < LONGEST * seconds
    ):
        timed += portions(trainer, seconds / SAMPLES)
        points.append({"seconds": perf_counter() - start, "resident_bytes": resident_bytes()})
    steps, taken = map(sum, zip(*timed))
    warm_up_seconds = max(timed[0][1], WARM_UP * points[-1]["seconds"])
    return {
        "tool": str(STATM),
        "steps": steps,
        "seconds": taken,
        "warm_up_seconds": warm_up_seconds,
        "points": points,
    }


def resident_bytes() -> int:
    """Resident memory of this process."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


OBSERVERS: dict[str, Callable[[Trainer, float], dict[str, Any]]] = {"anatomy": anatomy, "memory": memory}
"""Profiler inside the worker -> how it trains for about so many seconds."""


@contextmanager
def _switched_on() -> Iterator[None]:
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
