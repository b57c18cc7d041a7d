"""Speedups of one cell on one machine, in time order -> the levels that the series of runs had.

Speedups change by factors, so a level is a mean of logarithms, and single runs scatter around it. Changepoints minimise
the squared error plus a penalty for each changepoint (PELT: Killick, Fearnhead and Eckley, "Optimal detection of
changepoints with a linear computational cost", 2012).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

import numpy as np

from zoomgrad.results.stats.intervals import Interval

LEAST_NOISE, UNKNOWN_NOISE = 0.02, 0.05
"""Relative standard deviations: a lower bound, which runs of the same sources on one machine rarely undercut, and the
least assumed for a series too short to estimate it."""

ENOUGH_RUNS = 4
"""Least number of runs to estimate noise from their differences. In fewer, the change itself may dominate."""

_NORMAL_95 = 1.96
_MAD_TO_DEVIATION = 1.4826
_ONE_IN_A_THOUSAND = 10.83
"""Quantile of chi-squared with one degree of freedom."""


@dataclass(frozen=True)
class Level:
    """Runs `begin` to `end` (a half-open range), which differ only by noise."""

    begin: int
    end: int
    speedup: float
    """Geometric mean of their speedups."""


def levels(series: Sequence[Interval], deviation: float) -> list[Level]:
    """Cut a series where its level changed. A constant series has one level, an empty one has none.

    deviation: standard deviation of the logarithms about their level, see `spread`. Bounds may be NaN; values may not.
    """
    if not series:
        return []
    logs = [math.log(one.value) for one in series]
    begins = [0, *_changes(logs, deviation)]
    return [Level(begin, end, math.exp(fmean(logs[begin:end]))) for begin, end in pairwise([*begins, len(series)])]


def spread(series: Sequence[Interval]) -> float:
    """Standard deviation of logarithms about their level, from neighbouring runs, or from intervals if runs are few.

    One run's interval does not cover what varies between runs: memory layout, other guests of the machine. The median
    difference of neighbours does, and hardly reacts to a change of level. For a short series it is a rough figure; the
    median over all series of a machine is better.
    """
    logs = [math.log(one.value) for one in series]
    if len(logs) < ENOUGH_RUNS:
        within = [math.log(one.high / one.low) / 2 / _NORMAL_95 for one in series if one.low == one.low]
        return max(UNKNOWN_NOISE, median(within) if within else 0.0)
    steps = [abs(after - before) for before, after in pairwise(logs)]
    return max(LEAST_NOISE, median(steps) * _MAD_TO_DEVIATION / math.sqrt(2))


def _changes(logs: Sequence[float], deviation: float) -> list[int]:
    """Indices where new levels begin. Chance alone gives a new level in about one constant series of a thousand."""
    if len(logs) < 2:
        return []
    from ruptures.detection import Pelt  # imports SciPy, which only a history needs

    price = deviation**2 * (_ONE_IN_A_THOUSAND + 2 * math.log(len(logs)))
    # A new level may be one run long, because readers of a history care most about the newest run.
    ends = Pelt(model="l2", min_size=1, jump=1).fit(np.asarray(logs)).predict(pen=price)
    return [int(end) for end in ends[:-1]]
