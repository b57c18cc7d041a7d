"""A process's run sequence -> when it reached a steady state, if it did, and how.

Method: Barrett, Bolz-Tereick, Killick, Mount and Tratt, "Virtual machine warmup blows hot and cold", OOPSLA 2017. A run
sequence is cut where its mean or variance changes. It has a steady state if the segments at its end are equivalent to
the last one. Their sequences have 2,000 values and ours 4 to a few dozen; docs/proof.md lists the differences.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, pstdev
from typing import Literal

import numpy as np

Kind = Literal["flat", "warm-up", "slow-down", "no steady state", "cyclic", "too short"]
"""Flat: settled from the first value on. Warm-up: slower before it settled. Slow-down: faster at some point before.
No steady state: the level still changed near the end. Cyclic: values alternate, so no single value holds."""

MIN_VALUES = 12
"""Least number of values. With fewer, the quarter that must be steady would be one or two values."""
TAIL = 0.25
"""Share of the values that must be steady: the last 500 of Barrett's 2,000."""
PENALTIES = 3.0
"""Penalty for a changepoint, in logarithms of the number of values: one each for a mean, a variance and a position, by
the Bayesian information criterion (Schwarz, "Estimating the dimension of a model", 1978). Barrett's 15 suits thousands
of values, but finds no change in twenty values that fall to a seventh."""
SAME = 0.01
"""Segments are equivalent if their means differ by less than this share, even if each varies less."""
REPEATS, AGREE = 4, 0.75
"""Least number of periods in a cycle, and least autocorrelation."""


@dataclass(frozen=True)
class Steady:
    """Classification of a run sequence, and the index where its steady state starts; None without one."""

    kind: Kind
    start: int | None = None

    @property
    def settled(self) -> bool:
        return self.start is not None


def classify(values: Sequence[float]) -> Steady:
    """Classify one process's values, in order, including its warm-up.

    values: positive seconds. A single outlier, unless it is the first or last value, is replaced by the median of its
    neighbours.
    """
    if len(values) < MIN_VALUES:
        return Steady("too short")
    logs = _without_outliers([math.log(value) for value in values])
    noise = _noise(logs)
    segments = _segments(logs, noise)
    last = segments[-1]
    means = [fmean(segment) for segment in segments]
    same = [abs(fmean(segment) - fmean(last)) <= _tolerance(segment, last, noise) for segment in segments]
    left = next((back for back, equal in enumerate(reversed(same)) if not equal), len(same))
    before = len(segments) - left
    start = sum(len(segment) for segment in segments[:before])
    # A process that left this level before may leave it again, so it must have kept it for at least half of the values.
    settled = start <= len(logs) * (0.5 if any(same[:before]) else 1 - TAIL)
    if _repeats(logs[start:] if settled else logs):
        return Steady("cyclic")
    if not settled:
        return Steady("no steady state")
    if start == 0:
        return Steady("flat", 0)
    faster = any(mean < means[-1] and not equal for mean, equal in zip(means, same, strict=True))
    return Steady("slow-down" if faster else "warm-up", start)


def of_processes(found: Sequence[Steady]) -> Steady:
    """Classify a cell from its processes.

    If more than half of the processes never settled, neither did the cell. Otherwise those processes are ignored, the
    cell settles with its last process, and its kind is the least steady one. (Barrett et al. call a cell with differing
    processes inconsistent.)
    """
    settling = [one for one in found if one.kind != "no steady state"]
    if 2 * len(settling) < len(found):
        return Steady("no steady state")
    kinds = [one.kind for one in settling]
    ranked: tuple[Kind, ...] = ("cyclic", "too short", "slow-down", "warm-up")
    kind = next((kind for kind in ranked if kind in kinds), "flat" if kinds else "too short")
    starts = [one.start for one in settling if one.start is not None]
    return Steady(kind, max(starts) if starts and len(starts) == len(settling) else None)


def _tolerance(segment: Sequence[float], last: Sequence[float], noise: float) -> float:
    """Largest difference between the means of equivalent segments.

    The maximum of three standard errors, the last segment's own spread, and SAME.
    """
    errors = 3 * noise * math.sqrt(1 / len(segment) + 1 / len(last))
    return max(pstdev(last), errors, math.log1p(SAME))


def _noise(logs: Sequence[float]) -> float:
    """Robust standard deviation from one value to the next, which changes of level do not affect.

    At least half of `SAME`, because clocks are coarse and smaller changes do not matter.
    """
    steps = np.diff(np.asarray(logs))
    # 1.4826 median absolute deviations are a normal distribution's standard deviation; a difference has two errors.
    deviation = 1.4826 * float(np.median(np.abs(steps - np.median(steps)))) / math.sqrt(2)
    return max(deviation, math.log1p(SAME) / 2)


def _segments(logs: Sequence[float], noise: float) -> list[Sequence[float]]:
    """Cut the logarithms where their mean or variance changes: PELT (Killick et al., 2012), normal cost."""
    # ruptures imports SciPy, which a report without long sequences does not need.
    from ruptures.costs import CostNormal
    from ruptures.detection import Pelt

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it adds 1e-6 to every variance
        search = Pelt(custom_cost=CostNormal(), min_size=2, jump=1)
    # Scaled so that the noise's variance is 1e-6 too. Otherwise two values that happen to agree form a segment.
    scaled = np.asarray(logs) / noise * math.sqrt(1e-6)
    ends = search.fit(scaled).predict(pen=PENALTIES * math.log(len(logs)))
    return [logs[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def _without_outliers(logs: Sequence[float]) -> list[float]:
    """Replace single outliers by the median of their neighbours.

    The fences are Barrett's, median ± 3 (90th - 10th percentile), over five values on either side instead of a hundred.
    The first value stays, because it may be the whole warm-up, and the last one because its successor is unknown.
    """
    kept = list(logs)
    for at in range(1, len(logs) - 1):
        near = [*logs[max(at - 5, 0) : at], *logs[at + 1 : at + 6]]
        low, high = np.percentile(near, [10, 90])
        if abs(logs[at] - median(near)) > max(3 * float(high - low), math.log1p(SAME)):
            kept[at] = median(near)
    return kept


def _repeats(logs: Sequence[float]) -> bool:
    """Whether the values alternate: strongly autocorrelated at some lag, and negatively at a shorter one."""
    centred = np.asarray(logs) - fmean(logs)
    variance = float(np.mean(centred**2))
    if len(logs) < MIN_VALUES or math.sqrt(variance) < math.log1p(SAME):
        return False
    lowest = 1.0
    for lag in range(1, len(logs) // REPEATS + 1):
        alike = float(np.mean(centred[lag:] * centred[:-lag])) / variance
        if alike >= AGREE and lowest < 0:
            return True
        lowest = min(lowest, alike)
    return False
