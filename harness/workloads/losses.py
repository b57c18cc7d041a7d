"""Losses of the workloads, over Values; and criteria for a correct output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from zoomgrad.engines.nn import cross_entropy, hinge, l2, squared_error

Loss = Callable[[Any, Sequence[Any], Sequence[Any]], Any]
"""(model, outputs, targets) -> loss, over Values."""

IsCorrect = Callable[[Sequence[float], Sequence[float]], bool]
"""(outputs, targets) of one sample -> whether it counts as correct."""


def by_squared_error(model: Any, outputs: Sequence[Any], targets: Sequence[Any]) -> Any:
    """Sum of squared errors over all samples of a step."""
    return squared_error(outputs, targets)


def by_hinge_and_l2(model: Any, outputs: Sequence[Any], targets: Sequence[Any]) -> Any:
    """Hinge loss plus an L2 penalty, as in micrograd's demo. Targets are -1 or 1."""
    return hinge(outputs, targets) + l2(model.parameters(), 1e-4)


def by_cross_entropy(model: Any, outputs: Sequence[Any], targets: Sequence[Any]) -> Any:
    """Cross-entropy as in "Compiling ML models to C for fun". Targets are one-hot."""
    return cross_entropy(outputs, targets)


NAMES: dict[Loss, str] = {
    by_squared_error: "squared_error",
    by_hinge_and_l2: "hinge_l2",
    by_cross_entropy: "cross_entropy",
}
"""Loss -> its name in `engines.api.Network.loss`."""


def same_class(outputs: Sequence[float], targets: Sequence[float]) -> bool:
    """Whether the largest output is at the index of the target class."""
    return max(range(len(outputs)), key=outputs.__getitem__) == max(range(len(targets)), key=targets.__getitem__)


def same_side(outputs: Sequence[float], targets: Sequence[float]) -> bool:
    """Whether the single output has the sign of the label."""
    return (outputs[0] > 0) == (targets[0] > 0)


def within(tolerance: float) -> IsCorrect:
    """Criterion that every output is nearer to its target than `tolerance`."""
    return lambda outputs, targets: all(abs(o - t) < tolerance for o, t in zip(outputs, targets))
