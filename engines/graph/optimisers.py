"""Optimisers as data: how an update changes a parameter and the numbers that are kept for it.

Every update is derived from these expressions: the interpreted one, that of kernels in Python, and those in NumPy and
in machine code. They have the order of operations of the Python text, where `x ** 2` is libm's `pow(x, 2.0)`, so all
have its bits, except in engines whose names end in `-fast`.

Example: momentum keeps one number, m. Its update is `m = 0.9 * m + q / batch`, then `p -= rate * m`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from zoomgrad.engines.graph.expr import PYTHON, Expr, Leaf, call

Q, RATE, BATCH, UPDATE = Leaf("q"), Leaf("rate"), Leaf("batch"), Leaf("update")
"""A parameter's gradient, summed over a batch; the learning rate; the number of steps in the batch; the number of the
update, which counts from 1."""


def power(base: float, exponent: float) -> float:
    """libm's `pow`, which raises nothing."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


@dataclass(frozen=True, eq=False)
class Optimiser:
    """A rule for updates. It is applied to each parameter alone."""

    name: str
    change: Expr
    """What is subtracted from the parameter, over Q, RATE, BATCH, factors and new states."""
    states: Mapping[str, Expr] = field(default_factory=dict)
    """State of each parameter, 0.0 at first -> its next value, over the leaves of `change` and the state itself."""
    factors: Mapping[str, Expr] = field(default_factory=dict)
    """Factor that all parameters share in an update -> its value, over UPDATE."""

    def numbers(self, index: int, rate: float) -> list[float]:
        """The rate and the factors of an update. index: of the update, from 0."""
        return [rate, *self._factors(index + 1.0)]

    @cached_property
    def _factors(self) -> Callable[..., tuple[float, ...]]:
        return _function([UPDATE.name], self.factors, power)

    @property
    def changes(self) -> dict[str, Expr]:
        """Each state and last the parameter `p` -> its next value."""
        return {**self.states, "p": Leaf("p") - self.change}

    def function(self, pow_: Callable[..., Any] = power) -> Callable[..., tuple[Any, ...]]:
        """The update of one parameter: a function of it, its gradient, numbers, batch and states.

        pow_: computes powers, for example of arrays. Returns the states and the parameter.
        """
        arguments = ("p", Q.name, RATE.name, *self.factors, BATCH.name, *self.states)
        return _function(arguments, self.changes, pow_)


def _function(
    arguments: Sequence[str], changes: Mapping[str, Expr], pow_: Callable[..., Any]
) -> Callable[..., tuple[Any, ...]]:
    """A Python function that gives each name its expression in turn, and returns the results."""
    leaves = {name: name for name in arguments}
    lines = [f"def function({', '.join(arguments)}):"]
    lines += [f"    {name} = {PYTHON.spell(expr, leaves)[0]}" for name, expr in changes.items()]
    lines.append(f"    return ({''.join(f'{name}, ' for name in changes)})")
    names: dict[str, Any] = {"pow": pow_, "__name__": __name__}
    exec("\n".join(lines), names)  # noqa: S102  (text from these expressions, not from input)
    return names["function"]  # type: ignore[no-any-return]


MEAN, M, V = Q / BATCH, Leaf("m"), Leaf("v")

SGD = Optimiser("sgd", RATE * Q / BATCH)
MOMENTUM = Optimiser("momentum", RATE * M, {"m": 0.9 * M + MEAN})
ADAM = Optimiser(
    "adam",
    RATE * (M / Leaf("m_share")) / (call("pow", V / Leaf("v_share"), 0.5) + 1e-8),
    {"m": 0.85 * M + (1 - 0.85) * MEAN, "v": 0.99 * V + (1 - 0.99) * call("pow", MEAN, 2.0)},
    {"m_share": 1 - call("pow", 0.85, UPDATE), "v_share": 1 - call("pow", 0.99, UPDATE)},
)
"""With microgpt's numbers."""
