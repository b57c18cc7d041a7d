"""A Value with 50 digits and no gradient: the oracle that `tuple` is checked against.

Every other engine is compared with `tuple`, so its own gradients need a check that shares nothing with it: no chain
rule, no table of derivatives, no rounding to doubles. `Exact` computes a workload's loss forward only, at 50 digits; a
derivative is a central difference of two losses:

    df/dt (p + t d) at t = 0  =  (f(p + h d) - f(p - h d)) / 2h  +  O(h^2)

In doubles h = 1e-6 leaves an error of about 1e-10. At 50 digits h = 1e-15 leaves about 1e-30 from the series and 1e-35
from rounding, so each difference is the derivative to more digits than a double holds. Worked example: f(p) = p^3 at
p = 2 gives ((2 + h)^3 - (2 - h)^3) / 2h = 12 + h^2 = 12.000000000000000000000000000001.

At a kink (a ReLU whose input crosses 0, a `max` whose larger operand changes) a central difference is not a derivative.
The two losses then take different branches, and `slope` raises Kink; `tests/engines/test_conventions.py` states what
micrograd does there.
"""

from __future__ import annotations

from typing import ClassVar

import mpmath

DIGITS = 50
STEP = mpmath.mpf("1e-15")


class Kink(ArithmeticError):
    """The loss has no derivative here."""


class Exact:
    """A 50-digit number with micrograd's operators, written without `engines.value_base`."""

    __slots__ = ("data",)

    branches: ClassVar[list[bool]] = []
    """Which way each ReLU and `max` went, in order."""

    def __init__(self, data):
        self.data = mpmath.mpf(data)

    def __add__(self, other):
        return Exact(self.data + number(other))

    def __sub__(self, other):
        return Exact(self.data - number(other))

    def __rsub__(self, other):
        return Exact(number(other) - self.data)

    def __mul__(self, other):
        return Exact(self.data * number(other))

    def __truediv__(self, other):
        return Exact(self.data / number(other))

    def __rtruediv__(self, other):
        return Exact(number(other) / self.data)

    def __pow__(self, exponent):
        return Exact(mpmath.power(self.data, exponent))

    def __neg__(self):
        return Exact(-self.data)

    __radd__ = __add__
    __rmul__ = __mul__

    def relu(self):
        return self if self._branch(self.data > 0) else Exact(0)

    def max(self, other):
        return self if self._branch(self.data > number(other)) else Exact(number(other))

    def _branch(self, taken):
        self.branches.append(bool(taken))
        return taken

    def tanh(self):
        return Exact(mpmath.tanh(self.data))

    def exp(self):
        return Exact(mpmath.exp(self.data))

    def log(self):
        return Exact(mpmath.log(self.data))


def number(other):
    """Return the number in an operand, which is an Exact or a plain number."""
    return other.data if isinstance(other, Exact) else mpmath.mpf(other)


def loss_at(workload, nn, parameters, row):
    """Return the workload's loss over one row, with 50 digits.

    nn: the networks bound to Exact. parameters: numbers, in the model's order.
    """
    model = workload.model(nn)
    for p, start in zip(model.parameters(), parameters, strict=True):
        p.data = mpmath.mpf(start)
    inputs = [Exact(x) for x in row]
    return workload.loss(model, inputs, workload.outputs(model, inputs)).data


def slope(workload, nn, parameters, row, direction):
    """Return the derivative of the loss along `direction` (parameter index -> component). Raises Kink."""
    losses, branches = [], []
    for step in (STEP, -STEP):
        Exact.branches.clear()
        moved = [p + step * direction[i] if i in direction else p for i, p in enumerate(parameters)]
        losses.append(loss_at(workload, nn, moved, row))
        branches.append(list(Exact.branches))
    if branches[0] != branches[1]:
        raise Kink
    return (losses[0] - losses[1]) / (2 * STEP)
