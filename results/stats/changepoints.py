"""Where a series of runs changed its level. Pure functions over speedups in time order, of one cell on one machine.

Speedups change by factors, so their logarithms are what has a level: a mean, and noise about it. Changepoints are those
of least squares with a price for each (PELT: Killick, Fearnhead and Eckley, "Optimal detection of changepoints with a
linear computational cost", 2012).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

import numpy as np

from results.stats.intervals import Interval

LEAST_NOISE, UNKNOWN_NOISE = 0.02, 0.05
"""Standard deviations, relative: runs of the same sources on one machine are hardly ever nearer; what is assumed of
runs too few to tell."""

ENOUGH_RUNS = 4
"""Below this the differences between runs say nothing of noise: the only one may be the change."""

_NORMAL_95 = 1.96
_MAD_TO_DEVIATION = 1.4826
_ONE_IN_A_THOUSAND = 10.83
"""Quantile of chi-squared with one degree of freedom."""


@dataclass(frozen=True)
class Level:
    """Runs from `begin` up to `end`, in Python's way of counting, that differ by noise only."""

    begin: int
    end: int
    speedup: float
    """Their geometric mean."""


def levels(series: Sequence[Interval], deviation: float) -> list[Level]:
    """A series cut where its level changed; one level where it never did, none where it is empty.

    deviation: of logarithms about their level, see `spread`. A bound may be NaN, a speedup must not.
    """
    if not series:
        return []
    logs = [math.log(one.value) for one in series]
    begins = [0, *_changes(logs, deviation)]
    return [Level(begin, end, math.exp(fmean(logs[begin:end]))) for begin, end in pairwise([*begins, len(series)])]


def spread(series: Sequence[Interval]) -> float:
    """Standard deviation of logarithms about their level: from neighbours, or from intervals where runs are few.

    What makes runs differ (layout in memory, other guests of the machine) is not in the interval of one. Neighbours'
    differences, by their median, hold it, and hardly any change. Of a short series it is a rough figure: the median
    over a machine's series is a better one.
    """
    logs = [math.log(one.value) for one in series]
    if len(logs) < ENOUGH_RUNS:
        within = [math.log(one.high / one.low) / 2 / _NORMAL_95 for one in series if one.low == one.low]
        return max(UNKNOWN_NOISE, median(within) if within else 0.0)
    steps = [abs(after - before) for before, after in pairwise(logs)]
    return max(LEAST_NOISE, median(steps) * _MAD_TO_DEVIATION / math.sqrt(2))


def _changes(logs: Sequence[float], deviation: float) -> list[int]:
    """Where new levels begin: each must explain more than chance would in one series of a thousand, wherever it is."""
    if len(logs) < 2:
        return []
    from ruptures.detection import Pelt  # here, since only a history shall pay for SciPy

    price = deviation**2 * (_ONE_IN_A_THOUSAND + 2 * math.log(len(logs)))
    # A new level may be one run long: the newest is what a history is read for.
    ends = Pelt(model="l2", min_size=1, jump=1).fit(np.asarray(logs)).predict(pen=price)
    return [int(end) for end in ends[:-1]]
