"""Resident memory over time: a thread reads `/proc/self/statm` every few milliseconds while an engine trains.

The garbage collector makes a sawtooth. To keep it visible, thinning keeps the extreme points of each interval.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from zoomgrad.harness.worker.profiling.introspection import Readings, Subject

SAMPLE_SECONDS = 0.01
INTERVALS = 150
ENOUGH_STEPS, LONGEST = 24, 4.0
"""Least number of steps, and how long the training may be extended to reach it, as a multiple of its planned time. In
the first steps the heap has not yet grown to its working size."""
STATM = Path("/proc/self/statm")

Point = tuple[float, int]
"""Seconds since training began, and bytes."""


@contextmanager
def memory(readings: Readings, subject: Subject) -> Iterator[None]:
    """Sample the process's resident bytes from before the first step to after the last one."""
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
    """Keep the lowest and highest point of each time interval, and the first and last point."""
    if not points:
        return []
    length = points[-1][0] / intervals or 1.0
    by_interval: dict[int, list[Point]] = {}
    for point in points:
        by_interval.setdefault(min(int(point[0] / length), intervals - 1), []).append(point)
    kept = {points[0], points[-1]}
    for inside in by_interval.values():
        kept |= {min(inside, key=lambda point: point[1]), max(inside, key=lambda point: point[1])}
    return sorted(kept)
