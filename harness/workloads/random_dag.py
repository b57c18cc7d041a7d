"""A model without loops to recover: random operations on random operands."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from zoomgrad.harness.workloads.models import GRAPH_SEED, scaled

LIMIT = 4.0
"""A result that may exceed this goes through tanh first, so that all results stay finite."""


class _Operation(NamedTuple):
    share: int
    apply: Callable[[Any, Any], Any]
    """Applies it to two Values. An operation with one operand ignores the second."""
    bound: Callable[[float, float], float]
    """Bound of the result from the bounds of the operands."""


_OPERATIONS = {
    "+": _Operation(6, operator.add, operator.add),
    "*": _Operation(6, operator.mul, operator.mul),
    "max": _Operation(2, lambda a, b: a.max(b), max),
    "tanh": _Operation(2, lambda a, b: a.tanh(), lambda a, b: 1.0),
    "ReLU": _Operation(1, lambda a, b: a.relu(), lambda a, b: a),
    "**2": _Operation(1, lambda a, b: a**2, lambda a, b: a * a),
}


class RandomDag:
    """Graph of random operations over inputs and weights, and a linear read-out of the values that none reads."""

    def __init__(self, nn: Any, rng: random.Random, *, inputs: int, weights: int, operations: int) -> None:
        self.drawn, self.unread = _draw(inputs + weights, operations)
        self.weights = [nn.Neuron.Value(rng.uniform(-1, 1)) for _ in range(weights)]
        self.read_out = scaled(1.0, nn.Neuron(len(self.unread), False, rng=rng))

    def __call__(self, inputs: Sequence[Any]) -> Any:
        values = [*inputs, *self.weights]
        for name, left, right in self.drawn:
            values.append(_OPERATIONS[name].apply(values[left], values[right]))
        return self.read_out([values[index] for index in self.unread])

    def parameters(self) -> list[Any]:
        return [*self.weights, *self.read_out.parameters()]


def _draw(leaves: int, operations: int) -> tuple[list[tuple[str, int, int]], list[int]]:
    """Draw (operation, left operand, right operand) for every result. Return these, and the values that none reads.

    Values are numbered: leaves first, then results. The left operand is always an unread value, so that every result is
    used. The right operand is any value that is within LIMIT.
    """
    rng = random.Random(GRAPH_SEED)
    names, shares = list(_OPERATIONS), [operation.share for operation in _OPERATIONS.values()]
    # Bounds assume weights within 1, but training may exceed that a little. Only tanh's bound is certain.
    bounds = [1.0] * leaves
    tame, unread = list(range(leaves)), list(range(leaves))
    drawn: list[tuple[str, int, int]] = []

    def add(name: str, left: int, right: int) -> int:
        drawn.append((name, left, right))
        bounds.append(_OPERATIONS[name].bound(bounds[left], bounds[right]))
        return len(bounds) - 1

    while len(drawn) < operations:
        (name,) = rng.choices(names, shares)
        left = unread.pop(rng.randrange(len(unread)))
        made = add(name, left, rng.choice(tame))
        if bounds[made] > LIMIT:
            made = add("tanh", made, made)
        tame.append(made)
        unread.append(made)
    return drawn, unread
