"""When a process settled: run sequences cut at their changepoints, after Barrett et al. Pure functions.

Barrett, Bolz-Tereick, Killick, Mount and Tratt, "Virtual machine warmup blows hot and cold", OOPSLA 2017: a run
sequence is cut where its mean or variance changes, and has a steady state if the segments at its end are equivalent to
the last one. Theirs have 2,000 values and ours 4 to some dozens, so docs/statistics.md says what is different here.
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
"""Flat: settled from the first value on. Warm-up: slower before. Slow-down: somewhere faster before. No steady state:
the level still changed near the end. Cyclic: values come and go in turn, so that no single one holds."""

MIN_VALUES = 12
"""Fewer are too short to tell: the quarter that has to be steady would be one or two values."""
TAIL = 0.25
"""Share of the values that must be steady: the last 500 of Barrett's 2,000."""
PENALTIES = 3.0
"""What a changepoint must gain, in logarithms of the number of values: one each for a mean, a variance and a place, by
the Bayesian information criterion (Schwarz, "Estimating the dimension of a model", 1978). Barrett's 15 suit thousands
of values: of twenty that fall to a seventh, they find none to have changed."""
SAME = 0.01
"""Segments whose means are closer than this, relatively, are equivalent however little they vary."""
REPEATS, AGREE = 4, 0.75
"""A cycle must be seen that many times, and correlate that much with itself."""


@dataclass(frozen=True)
class Steady:
    """What a run sequence did, and the index from which its steady state holds; None where it has none."""

    kind: Kind
    start: int | None = None

    @property
    def settled(self) -> bool:
        return self.start is not None


def classify(values: Sequence[float]) -> Steady:
    """What a process's values did, one after another, warm-up included.

    values: seconds, positive. A lone value out of line, unless it is the first or the last, is an outlier and counts
    as its surroundings.
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
    # Where it left this level once it may leave it again: then it must have stayed for longer than all before.
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
    """What a cell did. One most of whose processes never settled did not; of another, those few are left out.

    It settled once every process had; the kind is the least steady of theirs. (Barrett et al. call a cell whose
    processes differ inconsistent.)
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
    """How far apart the means of equivalent segments may be: three standard errors, or the last one's own spread."""
    errors = 3 * noise * math.sqrt(1 / len(segment) + 1 / len(last))
    return max(pstdev(last), errors, math.log1p(SAME))


def _noise(logs: Sequence[float]) -> float:
    """Standard deviation from one value to the next, robustly, so that changes of level don't count.

    At least half of `SAME`: clocks are coarse, and no smaller change is of interest.
    """
    steps = np.diff(np.asarray(logs))
    # 1.4826 median absolute deviations are a normal distribution's standard deviation; a difference has two errors.
    deviation = 1.4826 * float(np.median(np.abs(steps - np.median(steps)))) / math.sqrt(2)
    return max(deviation, math.log1p(SAME) / 2)


def _segments(logs: Sequence[float], noise: float) -> list[Sequence[float]]:
    """The logarithms cut where their mean or variance changes: PELT (Killick et al., 2012), normal cost."""
    # A report that shows no long sequence must not pay for SciPy.
    from ruptures.costs import CostNormal
    from ruptures.detection import Pelt

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it adds 1e-6 to every variance
        search = Pelt(custom_cost=CostNormal(), min_size=2, jump=1)
    # In units in which that is the noise's variance: two values that happen to agree are then no segment of their own.
    scaled = np.asarray(logs) / noise * math.sqrt(1e-6)
    ends = search.fit(scaled).predict(pen=PENALTIES * math.log(len(logs)))
    return [logs[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def _without_outliers(logs: Sequence[float]) -> list[float]:
    """Lone values out of line become the median of their surroundings.

    Barrett's fences, median ± 3 (90th - 10th percentile), around five values on either side instead of a hundred. The
    first value stays, as it may be the whole of a warm-up, and so does the last, as what follows it is not known.
    """
    kept = list(logs)
    for at in range(1, len(logs) - 1):
        near = [*logs[max(at - 5, 0) : at], *logs[at + 1 : at + 6]]
        low, high = np.percentile(near, [10, 90])
        if abs(logs[at] - median(near)) > max(3 * float(high - low), math.log1p(SAME)):
            kept[at] = median(near)
    return kept


def _repeats(logs: Sequence[float]) -> bool:
    """Whether the values come and go in turn: at some lag they resemble themselves, and at a shorter one do not."""
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
