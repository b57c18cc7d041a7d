"""Curves of several trainings -> their median. A curve is points (x, y) with rising x, joined by straight lines."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections.abc import Sequence

Curve = Sequence[tuple[float, float]]

POINTS = 256
"""Most points of a median."""
LOGARITHMIC_FROM = 30.0
"""Ratio of the highest value to the lowest."""


LEVEL_WITHIN = 1e-9
"""A curve that varies less, relative to its highest value, shows only rounding."""


def height_at(curve: Curve, x: float) -> float:
    """The curve's y at x. Before its first point and after its last it is level."""
    right = bisect_left(curve, x, key=lambda point: point[0])
    if right in (0, len(curve)):
        return curve[min(right, len(curve) - 1)][1]
    (x0, y0), (x1, y1) = curve[right - 1 : right + 1]
    share = (x - x0) / (x1 - x0)
    return y0 * (1 - share) + y1 * share  # never beyond either, so that a logarithm stays possible


def median(curves: Sequence[Curve]) -> Curve:
    """The median of the curves' heights: at every x of any curve, or evenly spaced where those are too many.

    A training that stopped early keeps its last value; without it, the median would be that of the slow ones.
    """
    if len(curves) == 1:
        return curves[0]
    places = sorted({x for curve in curves for x, _ in curve})
    if len(places) > POINTS:
        low, high = places[0], places[-1]
        places = [low + (high - low) * index / (POINTS - 1) for index in range(POINTS)]
    return [(x, statistics.median(height_at(curve, x) for curve in curves)) for x in places]


def logarithmic(values: Sequence[float]) -> bool:
    """Whether these values are easier to read on a logarithmic axis."""
    return min(values) > 0 and max(values) / min(values) >= LOGARITHMIC_FROM


def is_level(low: float, high: float) -> bool:
    """Whether a curve from `low` to `high` varies by rounding alone, and so should be drawn flat."""
    return high - low <= LEVEL_WITHIN * abs(high)
