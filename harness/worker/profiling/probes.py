"""Training under observation: portions of steps, and the probe of the process's resident memory.

`anatomy.py` has another probe, and `profile.PROBES` lists them all.
"""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter
from typing import Any, Callable, NamedTuple

from zoomgrad.engines import Engine
from zoomgrad.engines.api import Trainer
from zoomgrad.harness.workloads import Workload

SAMPLES = 300
"""Approximate number of readings of the resident memory."""
ENOUGH_STEPS, LONGEST = 24, 4.0
"""Least number of steps, and how long the training may be extended to reach it, as a multiple of its planned time. In
the first steps the heap has not yet grown to its working size."""
PORTION_SECONDS = 0.05
"""Approximate time of a portion of steps. With one call per step, calls would dominate the time of a fast engine."""
STATM = Path("/proc/self/statm")


class Subject(NamedTuple):
    """What a probe trains."""

    engine: Engine
    workload: Workload
    trainer: Trainer
    seconds: float
    """Approximate training time."""


class Observed(NamedTuple):
    """A training that was observed."""

    portions: list[tuple[int, float]]
    """Steps and seconds of each portion; the first one is a single step."""
    readings: dict[str, Any]
    preparations: int = 0


Probe = Callable[[Subject], Observed]


def portions(trainer: Trainer, seconds: float) -> list[tuple[int, float]]:
    """Train for about `seconds`. Return steps and seconds of each portion; the first one is a single step."""
    timed: list[tuple[int, float]] = []
    steps, end = 1, perf_counter() + seconds
    while not timed or perf_counter() < end:
        start = perf_counter()
        trainer.train(steps)
        taken = perf_counter() - start
        timed.append((steps, taken))
        if taken < PORTION_SECONDS:
            steps *= 2
    return timed


def memory(subject: Subject) -> Observed:
    """Read the process's resident bytes before the first step, and then after a few steps each time."""
    trainer, seconds = subject.trainer, subject.seconds
    start, before = perf_counter(), len(trainer.losses)
    points = [(0.0, resident_bytes())]
    timed: list[tuple[int, float]] = []
    while (elapsed := points[-1][0]) < seconds or (
        len(trainer.losses) - before < ENOUGH_STEPS and elapsed < LONGEST * seconds
    ):
        timed += portions(trainer, seconds / SAMPLES)
        points.append((perf_counter() - start, resident_bytes()))
    return Observed(timed, {"points": points})


def resident_bytes() -> int:
    """Resident memory of this process."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
