"""How sure a figure is. Pure functions over seconds per step; the process is the sampling unit.

Two values of one process share its address layout, its hash seed and its JIT's decisions, so they say less than two
processes do: each process counts once (Kalibera and Jones, "Rigorous benchmarking in reasonable time", 2013).

Within a process values are averaged, across processes the median is taken. A full garbage collection every fifth step
makes that step eight times as long (`baseline` on `digits`, CPython 3.13): it is part of what an epoch costs, and a
median within the process would not see it. A process that the machine disturbed is an outlier, which a median leaves
out.

Every interval is a 95 % interval, made on logarithms, so that a ratio's bounds mirror those of its inverse. How often
they hold the truth, and why they are no bootstrap's, is in docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median, stdev

Samples = Sequence[Sequence[float]]
"""Seconds per step, one inner sequence a process."""

MIN_PROCESSES = 3
"""Below this nothing can be said of the spread between processes."""

CONFIDENCE = 0.95

FEW = 4
"""Up to so many processes an interval is Student's: the extremes of three and four cover 75 and 87.5 %."""


class TooFewProcesses(ValueError):
    """An interval was asked of too few processes."""


@dataclass(frozen=True)
class Interval:
    """A figure with its bounds."""

    value: float
    low: float
    high: float

    @property
    def relative_width(self) -> float:
        return (self.high - self.low) / self.value if self.value else 0.0


def median_of_processes(samples: Samples) -> float:
    """Median over processes of each process's mean, in seconds."""
    if not samples or any(not len(values) for values in samples):
        raise TooFewProcesses("a median needs at least one process, and each process at least one value")
    return median(fmean(values) for values in samples)


def ratio_of_medians(base: Samples, engine: Samples) -> float:
    """Base over engine, of one process or more on either side. Raises TooFewProcesses."""
    return median_of_processes(base) / median_of_processes(engine)


def step_time(samples: Samples) -> Interval:
    """Seconds per step with its interval.

    samples: seconds per step, shape (processes, values). Raises TooFewProcesses below 3 processes.
    """
    return _interval(median_of_processes(samples), [math.log(fmean(values)) for values in samples])


def speedup(base: Samples, engine: Samples) -> Interval:
    """Ratio of step times, base over engine, with the interval of the blocks' own ratios.

    base, engine: seconds per step, shape (processes, values). The n-th process of one and the n-th of the other come
    from one block (see `results.samples.common`), so that what slowed the whole block cancels. Raises TooFewProcesses
    below 3 processes on either side.
    """
    _enough(min(len(base), len(engine)))
    return _interval(ratio_of_medians(base, engine), _block_logs(base, engine))


def ratio_of_blocks(base: Samples, engine: Samples) -> float:
    """Median of the blocks' own ratios, of one block or more: the middle of `speedup`'s interval."""
    return math.exp(median(_block_logs(base, engine)))


def _block_logs(base: Samples, engine: Samples) -> list[float]:
    return [math.log(fmean(over) / fmean(under)) for over, under in zip(base, engine, strict=True)]


def change(new: Interval, old: Interval) -> Interval:
    """Ratio of two figures that are positive and independent, new over old, with the interval theirs give it.

    On logarithms half-widths add up as the roots of their squares, for each side by itself: the method of variance
    estimates recovery (Zou and Donner, "Construction of confidence limits about effect measures", 2008). NaN where
    either has none.
    """
    up = math.hypot(math.log(new.high / new.value), math.log(old.value / old.low))
    down = math.hypot(math.log(new.value / new.low), math.log(old.high / old.value))
    return _spread(new.value / old.value, down, up)


def speedup_change(base_new: Samples, engine_new: Samples, base_old: Samples, engine_old: Samples) -> Interval:
    """What became of a speedup: the new run's over the old run's, with its interval.

    Only ratios within a run meet, so the two runs may come from two machines. Of blocks' ratios, not of medians: these
    let more of a block's noise through, and may lie at the edge of their interval. Raises TooFewProcesses as `speedup`
    does.
    """

    def of_blocks(base: Samples, engine: Samples) -> Interval:
        _enough(min(len(base), len(engine)))
        return _interval(ratio_of_blocks(base, engine), _block_logs(base, engine))

    return change(of_blocks(base_new, engine_new), of_blocks(base_old, engine_old))


@cache
def student(count: int) -> float:
    """97.5 % quantile of Student's t for so many samples, two or more."""
    # Here, so that only an interval of few processes pays for SciPy. scipy.stats has the same number, and takes three
    # times as long to import.
    from scipy.special import stdtrit

    return float(stdtrit(count - 1, (1 + CONFIDENCE) / 2))


def geometric_mean(intervals: Sequence[Interval]) -> Interval:
    """Geometric mean of ratios, over workloads say, with the interval theirs give it.

    Errors are taken to be independent from one interval to the next, and combine as in `change`. That holds for
    speedups of different workloads, which share no process; speedups of several engines share their baseline's
    processes, and their mean is less sure than this says. It is the mean of these workloads: how others would do, no
    interval here tells. NaN bounds where any has none; ValueError where there are no intervals.
    """
    if not intervals:
        raise ValueError("a geometric mean needs at least one interval")
    up = math.hypot(*(math.log(one.high / one.value) for one in intervals)) / len(intervals)
    down = math.hypot(*(math.log(one.value / one.low) for one in intervals)) / len(intervals)
    return _spread(math.exp(fmean(math.log(one.value) for one in intervals)), down, up)


def _spread(value: float, down: float, up: float) -> Interval:
    return Interval(value, value * math.exp(-down), value * math.exp(up))


def _interval(value: float, logs: Sequence[float]) -> Interval:
    """The interval of the logarithms' median, taken back; widened to hold the value, a median of other things."""
    _enough(len(logs))
    low, high = _student(logs) if len(logs) <= FEW else _order_statistics(logs)
    return Interval(value, min(value, math.exp(low)), max(value, math.exp(high)))


def _enough(processes: int) -> None:
    if processes < MIN_PROCESSES:
        raise TooFewProcesses(
            f"an interval needs {MIN_PROCESSES} processes, here are {processes}: run more blocks (--blocks)"
        )


def _student(logs: Sequence[float]) -> tuple[float, float]:
    mean, reach = fmean(logs), student(len(logs)) * stdev(logs) / math.sqrt(len(logs))
    return mean - reach, mean + reach


def _order_statistics(logs: Sequence[float]) -> tuple[float, float]:
    """Bounds of a median between two order statistics a side, whatever the distribution.

    Hettmansperger and Sheather, "Confidence intervals based on interpolated order statistics", 1986.
    """
    ranked = sorted(logs)
    rank, share = _place(len(ranked))
    low = ranked[rank] + share * (ranked[rank + 1] - ranked[rank])
    high = ranked[-1 - rank] - share * (ranked[-1 - rank] - ranked[-2 - rank])
    return low, high


@cache
def _place(count: int) -> tuple[int, float]:
    """Of `count` values the rank, from 0, at which the lower bound lies, and its share of the way to the next one."""

    def coverage(rank: int) -> float:
        """That the median lies between the values of this rank from below and from above: the sign test's."""
        return 1 - sum(math.comb(count, k) for k in range(rank + 1)) / (1 << count - 1)

    rank = 0
    while coverage(rank + 1) >= CONFIDENCE:
        rank += 1
    # Negative for five values: their extremes cover 93.75 %, and the bounds lie a little way outside.
    beyond = (coverage(rank) - CONFIDENCE) / (coverage(rank) - coverage(rank + 1))
    k = rank + 1
    return rank, (count - k) * beyond / (k + (count - 2 * k) * beyond)
