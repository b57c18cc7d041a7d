"""Criteria for a correct output, for the accuracy of `zoomgrad train`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

IsCorrect = Callable[[Sequence[float], Sequence[float]], bool]
"""(outputs, targets) of one sample -> whether it counts as correct."""


def same_class(outputs: Sequence[float], targets: Sequence[float]) -> bool:
    """Whether the largest output is at the index of the target class."""
    return max(range(len(outputs)), key=outputs.__getitem__) == max(range(len(targets)), key=targets.__getitem__)


def same_side(outputs: Sequence[float], targets: Sequence[float]) -> bool:
    """Whether the single output has the sign of the label."""
    return (outputs[0] > 0) == (targets[0] > 0)


def within(tolerance: float) -> IsCorrect:
    """Criterion that every output is nearer to its target than `tolerance`."""
    return lambda outputs, targets: all(abs(o - t) < tolerance for o, t in zip(outputs, targets))
