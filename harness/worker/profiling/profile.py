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

from zoomgrad.harness import workloads
from zoomgrad.harness.worker.job import ProfileJob, Reply, do_job, ready
from zoomgrad.harness.worker.profiling.anatomy import anatomy
from zoomgrad.harness.worker.profiling.probes import Observed, Probe, Subject, memory, portions


def profile(job: ProfileJob) -> Reply:
    """Prepare the engine, and train for the job's time under its probe. Switches an outside profiler on and off."""
    workload = workloads.load(job["workload"])
    engine = ready(job["engine"], workload)
    subject = Subject(engine, workload, engine.prepare(workload), job["seconds"])
    with _switched_on():
        taken, readings, preparations = PROBES[job["probe"]](subject)
    return {
        "status": "measured",
        "steps": sum(steps for steps, _ in taken),
        "seconds": sum(seconds for _, seconds in taken),
        "preparations": preparations,
        "pid": os.getpid(),
        "first_step_seconds": taken[0][1],
        "readings": readings,
    }


def exercise(subject: Subject) -> Observed:
    """Train for a profiler outside the process. An engine that compiles prepares repeatedly for the first half."""
    trainer, preparations, end = subject.trainer, 0, perf_counter() + subject.seconds
    while trainer.phases and perf_counter() < end - subject.seconds / 2:
        trainer = subject.engine.prepare(subject.workload)
        preparations += 1
    return Observed(portions(trainer, end - perf_counter()), {}, preparations)


PROBES: dict[str, Probe] = {
    "nothing": exercise,
    "anatomy": anatomy,
    "memory": memory,
}
"""Value of a job's `probe` -> the probe."""


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
