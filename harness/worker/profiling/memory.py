"""Resident memory over time: a thread reads `/proc/self/statm` every few milliseconds while an engine trains.

A saw-tooth is the collector at work. To keep its teeth, points are thinned by intervals: the lowest and the highest of
each stay.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from harness.worker.profiling.introspection import Readings, Subject

SAMPLE_SECONDS = 0.01
INTERVALS = 150
ENOUGH_STEPS, LONGEST = 24, 4.0
"""Where steps are slow, training goes on until there are so many, or for at most so many times as long: in its first
steps a heap has not yet grown to the size that it works with.
"""
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
    """The lowest and the highest point of each of so many intervals of time, the first point and the last one."""
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
