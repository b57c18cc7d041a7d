"""Probe of the process while an engine trains: its resident memory.

A probe is a context manager around the training, and writes its readings into a plain dictionary. `anatomy` has a
module of its own. `profile.PROBES` lists all of them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any, Callable, NamedTuple

from zoomgrad.engines.api import Trainer
from zoomgrad.harness.workloads import Workload

SAMPLE_SECONDS = 0.01
"""Time between two readings of the resident memory."""
INTERVALS = 60
ENOUGH_STEPS, LONGEST = 24, 4.0
"""Least number of steps, and how long the training may be extended to reach it, as a multiple of its planned time. In
the first steps the heap has not yet grown to its working size."""
PORTION_SECONDS = 0.05
"""Approximate time of a portion of steps. With one call per step, calls would dominate the time of a fast engine."""
STATM = Path("/proc/self/statm")

Point = tuple[float, int]
"""Seconds since training began, and bytes."""
Readings = dict[str, Any]


class Subject(NamedTuple):
    """The training that a probe observes."""

    trainer: Trainer
    """The trainer that the caller trains."""
    workload: Workload
    seconds: float
    """Approximate training time."""


Probe = Callable[[Readings, Subject], AbstractContextManager[None]]
"""(readings to fill, subject) -> context manager around the training."""


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


def nothing(readings: Readings, subject: Subject) -> AbstractContextManager[None]:
    """No probe, for a profiler outside the process."""
    return nullcontext()


@contextmanager
def memory(readings: Readings, subject: Subject) -> Iterator[None]:
    """Sample the process's resident bytes from before the first step to after the last one, in a thread."""
    page = os.sysconf("SC_PAGE_SIZE")
    points: list[Point] = []
    trainer, before = subject.trainer, len(subject.trainer.losses)
    ended = threading.Event()
    start = perf_counter()

    def sample(file: int) -> None:
        resident = int(os.pread(file, 100, 0).split()[1])
        points.append((perf_counter() - start, resident * page))

    def keep_sampling(file: int) -> None:
        while not ended.wait(SAMPLE_SECONDS):
            sample(file)

    file = os.open(STATM, os.O_RDONLY)
    sampler = threading.Thread(target=keep_sampling, args=(file,), daemon=True)
    sample(file)
    sampler.start()
    try:
        yield
        while len(trainer.losses) - before < ENOUGH_STEPS and perf_counter() - start < LONGEST * subject.seconds:
            trainer.train(1)
    finally:
        ended.set()
        sampler.join()
        sample(file)
        os.close(file)
        readings["points"] = extremes(points, INTERVALS)
        readings["steps"] = len(trainer.losses) - before


def extremes(points: Sequence[Point], intervals: int) -> list[Point]:
    """Keep the first and last point, and each interval's lowest and highest, so that a sawtooth stays visible."""
    length = points[-1][0] / intervals or 1.0
    by_interval: dict[int, list[Point]] = {}
    for point in points:
        by_interval.setdefault(min(int(point[0] / length), intervals - 1), []).append(point)
    kept = {points[0], points[-1]}
    for inside in by_interval.values():
        kept |= {min(inside, key=lambda point: point[1]), max(inside, key=lambda point: point[1])}
    return sorted(kept)
