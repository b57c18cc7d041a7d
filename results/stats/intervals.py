"""Seconds per step -> step times, speedups and their changes, with 95 % intervals. The process is the sampling unit.

Two values of one process share its address layout, its hash seed and its JIT's decisions, so they carry less
information than two processes. Each process therefore counts once (Kalibera and Jones, "Rigorous benchmarking in
reasonable time", 2013).

A figure is the median over processes of each process's mean. A full garbage collection every fifth step makes that step
eight times as long (`baseline` on `digits`, CPython 3.13). It is part of an epoch's cost, and a median within the
process would hide it. A process that the machine disturbed is an outlier, which the median over processes ignores.

Intervals are computed on logarithms, so that the bounds of a ratio mirror those of its inverse. docs/trust.md
gives their coverage and explains why they are not bootstrap intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median, stdev

Samples = Sequence[Sequence[float]]
"""Seconds per step, one inner sequence per process."""

MIN_PROCESSES = 3
"""Fewer processes say nothing about the spread between processes."""

ERROR = 0.05
"""Probability that an interval leaves out the truth, unless the caller asks for a smaller one."""

MOST_BEYOND = 1.25
"""Extremes that err up to this many times too often are moved outwards a little. With fewer processes, intervals are
Student's: the extremes of three or four cover only 75 or 87.5 %."""


class TooFewProcesses(ValueError):
    """There are too few processes for the requested figure."""


@dataclass(frozen=True)
class Interval:
    """A figure with its lower and upper bound."""

    value: float
    low: float
    high: float


def median_of_processes(samples: Samples) -> float:
    """Median over processes of each process's mean, in seconds."""
    if not samples or any(not len(values) for values in samples):
        raise TooFewProcesses("a median needs at least one process, and each process at least one value")
    return median(fmean(values) for values in samples)


def ratio_of_medians(base: Samples, engine: Samples) -> float:
    """Ratio of median step times, base over engine, from at least one process each. Raises TooFewProcesses."""
    return median_of_processes(base) / median_of_processes(engine)


def step_time(samples: Samples, hosts: Sequence[str] = ()) -> Interval:
    """Median step time in seconds, with its interval.

    samples: seconds per step, shape (processes, values). hosts: see `interval_of_median`. Raises TooFewProcesses below
    3 processes.
    """
    logs = [math.log(fmean(values)) for values in samples]
    return interval_of_median(median_of_processes(samples), logs, hosts=hosts)


def speedup(base: Samples, engine: Samples, value: float | None = None, hosts: Sequence[str] = ()) -> Interval:
    """Ratio of median step times, base over engine, with the interval of the ratios within blocks.

    base, engine: seconds per step, shape (processes, values). The n-th process of each comes from the same block (see
    `results.samples.common`), so a disturbance of the whole block cancels. value: the ratio, if the caller knows it
    from more processes. hosts: see `interval_of_median`. Raises TooFewProcesses below 3 processes on either side.
    """
    _enough(min(len(base), len(engine)))
    value = ratio_of_medians(base, engine) if value is None else value
    return interval_of_median(value, _block_logs(base, engine), hosts=hosts)


def ratio_of_blocks(base: Samples, engine: Samples) -> float:
    """Median of the ratios within blocks, for at least one block: the centre of `speedup`'s interval."""
    return math.exp(median(_block_logs(base, engine)))


def _block_logs(base: Samples, engine: Samples) -> list[float]:
    return [math.log(fmean(over) / fmean(under)) for over, under in zip(base, engine, strict=True)]


def change(new: Interval, old: Interval) -> Interval:
    """Ratio of two positive, independent figures, new over old, with the interval that follows from both.

    The half-widths on logarithms combine as the root of the sum of squares, separately for each side: the method of
    variance estimates recovery (Zou and Donner, "Construction of confidence limits about effect measures", 2008).
    Bounds are NaN if a bound of either figure is.
    """
    up = math.hypot(math.log(new.high / new.value), math.log(old.value / old.low))
    down = math.hypot(math.log(new.value / new.low), math.log(old.high / old.value))
    return _spread(new.value / old.value, down, up)


def speedup_change(
    base_new: Samples, engine_new: Samples, base_old: Samples, engine_old: Samples, error: float = ERROR
) -> Interval:
    """Change of a speedup: the new run's over the old run's, with its interval.

    It compares only ratios from within each run, so the runs may come from different machines. It uses ratios within
    blocks instead of ratios of medians, which pass on more of a block's noise and may fall at the edge of their
    interval. Raises TooFewProcesses as `speedup` does.
    """

    def of_blocks(base: Samples, engine: Samples) -> Interval:
        _enough(min(len(base), len(engine)))
        return interval_of_median(ratio_of_blocks(base, engine), _block_logs(base, engine), error)

    return change(of_blocks(base_new, engine_new), of_blocks(base_old, engine_old))


@cache
def student(count: int, error: float = ERROR) -> float:
    """Quantile of Student's t for `count` samples, at least two, that leaves half of the error above it."""
    # Imported here, because only intervals of few processes need SciPy. scipy.stats gives the same number, but takes
    # three times as long to import.
    from scipy.special import stdtrit

    return float(stdtrit(count - 1, 1 - error / 2))


def _spread(value: float, down: float, up: float) -> Interval:
    return Interval(value, value * math.exp(-down), value * math.exp(up))


def interval_of_median(
    value: float, logs: Sequence[float], error: float = ERROR, hosts: Sequence[str] = ()
) -> Interval:
    """Interval of the logarithms' median, converted back, and widened to include `value`, which is another median.

    hosts: of a fleet, the host of each process. Processes of one host share its processor, memory and libraries, so
    from three hosts on each host counts once, as the mean of its logarithms: the interval is that of a machine type.
    With fewer, it holds for these hosts only. Raises TooFewProcesses below 3 values.
    """
    _enough(len(logs))
    if len(set(hosts)) >= MIN_PROCESSES:
        by_host: dict[str, list[float]] = {}
        for log, host in zip(logs, hosts, strict=True):
            by_host.setdefault(host, []).append(log)
        logs = [fmean(of_host) for of_host in by_host.values()]
    has_extremes = 0.5 ** (len(logs) - 1) <= MOST_BEYOND * error
    low, high = _order_statistics(logs, error) if has_extremes else _student(logs, error)
    return Interval(value, min(value, math.exp(low)), max(value, math.exp(high)))


def _enough(processes: int) -> None:
    if processes < MIN_PROCESSES:
        raise TooFewProcesses(
            f"an interval needs {MIN_PROCESSES} processes, but there are {processes}: run more blocks (--blocks)"
        )


def _student(logs: Sequence[float], error: float) -> tuple[float, float]:
    mean, reach = fmean(logs), student(len(logs), error) * stdev(logs) / math.sqrt(len(logs))
    return mean - reach, mean + reach


def _order_statistics(logs: Sequence[float], error: float) -> tuple[float, float]:
    """Distribution-free bounds of a median, each interpolated between two order statistics.

    Hettmansperger and Sheather, "Confidence intervals based on interpolated order statistics", 1986.
    """
    ranked = sorted(logs)
    rank, share = _place(len(ranked), error)
    low = ranked[rank] + share * (ranked[rank + 1] - ranked[rank])
    high = ranked[-1 - rank] - share * (ranked[-1 - rank] - ranked[-2 - rank])
    return low, high


@cache
def _place(count: int, error: float) -> tuple[int, float]:
    """Rank of the lower bound among `count` values, from 0, and the fraction of the way from it to the next value."""

    def missed(rank: int) -> float:
        """Probability that the median is not between the values of this rank from below and above (sign test)."""
        return sum(math.comb(count, k) for k in range(rank + 1)) / (1 << count - 1)

    rank = 0
    while missed(rank + 1) <= error:
        rank += 1
    # Negative for five values: their extremes cover only 93.75 %, so the bounds are slightly outside them.
    beyond = (error - missed(rank)) / (missed(rank + 1) - missed(rank))
    k = rank + 1
    return rank, (count - k) * beyond / (k + (count - 2 * k) * beyond)
