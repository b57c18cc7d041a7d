"""Optimiser -> the update of a vector of parameters: the same expressions, without powers.

The result is a list of statements over doubles, for the lanes of a vector, in the language of `graph/expr.py`. Each
has a *slot*, whose number is its name in later statements. The first slots are the buffers and the numbers of an update
that all lanes share. The language has further primitives: `fma(a, b, c)` is a * b + c, and `fnma(a, b, c)` is c - a *
b, both rounded once. `sqrt` is the processor's; `rsqrt`, of AVX-512, is 1 / sqrt(x) with a relative error of at most
2^-14. `xor` and `or` are bitwise, and `minus` subtracts bits as integers.

**Powers.** r, which is x * x or the square root of x, is the double nearest to the exact result, or nearly (see
`_root`). libm's pow may return its neighbour, but only if the exact result is near the middle of the two. A fused
multiply-add gives e, the exact result minus r. Adding WIDER * e to r gives the neighbour if e is near half a unit in
the last place, and r itself otherwise. So pow returns r or this `other`, and these are different doubles for one lane
in thirty. Even then, most statements have the same bits for both, because they round: 0.99 * v + 0.01 * r does, if v is
the larger. A lane is unsure where they differ.

Example with WIDER 1.03: the exact result is 0.47 units above r. 1.03 * 0.47 < 0.5, so other is r.
With 0.49 units, other is the next larger double.

In glibc from 2.28 on, pow computes exp(y * log(x)) with an error of 0.511 units from exp, and 1.5 * 2^-68 relative to
the logarithm. |y * log(x)|, the logarithm of r, is at most 89 within the range of a square, and 45 within that of a
root. So the error is at most 0.51507 and 0.51307 units, of which the last rounding makes 0.5. The neighbour can be the
result only if e is at least 1 - 0.51507 units, and then WIDER * e is at least half a unit.

If r is a power of two, the doubles below it are half as far apart as those above. The sum rounds there as it should,
and the bound holds for units of either size, because it is for the smallest unit: results just below a power of two.
Few numbers have such a result, and `tests/engines/lengths` compares all of them.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, Optional

from zoomgrad.engines.graph.expr import Apply, Expr, Leaf, Literal, call, where
from zoomgrad.engines.graph.optimisers import BATCH, RATE, UPDATE, Optimiser

WIDER = 1.032
"""Above 0.5 / (1 - 0.51507)."""
SQUARE, ROOT = Literal(2.0), Literal(0.5)
"""The exponents that lanes know."""
SMALLEST = 5e-324
GUESS = struct.unpack("<d", struct.pack("<q", 0x7FD69A437FF7A1B8))[0]


class NoLanes(Exception):
    """An update that lanes can't compute."""


class Lanes(NamedTuple):
    """The update of a vector. The leaves of an expression are slots."""

    width: int
    """Doubles in the vector."""
    statements: list[Expr]
    """The values of the slots after the buffers and the numbers."""
    results: list[int]
    """The slots of the buffers' new contents."""
    unsure: Optional[int]
    """The slot that is not 0 in unsure lanes; None if all lanes are sure."""


def buffers(optimiser: Optimiser) -> tuple[str, ...]:
    """The names of the first slots, in order."""
    return ("p", "q", *optimiser.states)


def numbers(optimiser: Optimiser, is_fast: bool) -> tuple[str, ...]:
    """The names of the slots after the buffers. is_fast: whether last bits may differ, so that inverses are of use."""
    names = (RATE.name, BATCH.name, UPDATE.name, *optimiser.factors)
    return (*names, *map(_inverse, names)) if is_fast else names


def _inverse(name: str) -> str:
    return f"1 / {name}"


def factors(optimiser: Optimiser, is_fast: bool) -> list[Expr]:
    """The numbers after RATE, BATCH and UPDATE, each over the slots before it, with libm's powers."""
    writer = _Writer(optimiser, 1, is_single=False, is_fast=is_fast)
    values: list[Expr] = [writer.pair(expr).value for expr in optimiser.factors.values()]
    return values + [1.0 / writer.slots[name] for name in numbers(optimiser, False) if is_fast]


def lanes(optimiser: Optimiser, width: int, *, is_single: bool, is_fast: bool) -> Lanes:
    """The update of a vector. is_single: whether a batch is one step. is_fast: whether last bits may differ.

    Raises NoLanes for functions and exponents without lanes, and for two powers in one expression, unless width is 1.
    """
    writer = _Writer(optimiser, width, is_single=is_single, is_fast=is_fast)
    for target, expr in optimiser.changes.items():
        writer.step(target, expr)
    writer.step("q", Literal(0.0))
    results = [int(writer.slots[name].name) for name in buffers(optimiser)]
    return Lanes(width, writer.statements, results, int(writer.unsure.name) if writer.unsure else None)


class _Pair(NamedTuple):
    """A value with the nearest power, and with the other double that libm may return."""

    value: Expr
    other: Optional[Expr] = None
    """None if the value has no power."""


class _Writer:
    def __init__(self, optimiser: Optimiser, width: int, *, is_single: bool, is_fast: bool) -> None:
        self._numbers = numbers(optimiser, is_fast)
        names = (*buffers(optimiser), *self._numbers)
        self.slots = {name: Leaf(str(number)) for number, name in enumerate(names)}
        """Number, or buffer -> the slot of its present value."""
        self.statements: list[Expr] = []
        self.unsure: Optional[Leaf] = None
        self._width, self._is_single, self._is_fast = width, is_single, is_fast
        self._first = len(names)
        self._equal: dict[Expr, Leaf] = {}

    def step(self, target: str, expr: Expr) -> None:
        """The new value of a buffer."""
        value, other = self.pair(expr)
        self.slots[target] = self._add(value)
        if other:
            self._mark(call("xor", self.slots[target], other))

    def _add(self, expr: Expr) -> Leaf:
        """A new slot for a value."""
        self.statements.append(expr)
        return Leaf(str(self._first + len(self.statements) - 1))

    def _let(self, expr: Expr) -> Leaf:
        """The slot of a value, which equal values share."""
        if expr not in self._equal:
            self._equal[expr] = self._add(expr)
        return self._equal[expr]

    def _mark(self, bits: Expr) -> None:
        """Lanes with any of these bits are unsure."""
        self.unsure = self._add(call("or", self.unsure, bits) if self.unsure else bits)

    def _mark_outside(self, x: Leaf, exponent: int) -> None:
        """Mark NaN, and numbers other than 0 below 2^-exponent or above 2^exponent."""
        size, low, high = self._let(call("abs", x)), Literal(2.0**-exponent), Literal(2.0**exponent)
        raised = self._let(where(size > low, size, low))
        bounded = self._let(where(raised < high, raised, high))
        self._mark(where(size < SMALLEST, 0.0, call("xor", bounded, size)))

    def pair(self, expr: Expr) -> _Pair:
        """The expression over slots. A vector of several lanes has no powers."""
        if isinstance(expr, Leaf):
            return _Pair(self.slots[expr.name])
        if not isinstance(expr, Apply):
            return _Pair(expr)
        if self._width > 1 and expr.primitive == "pow":
            return self._power(*expr.operands)
        if self._width > 1 and expr.primitive not in ("add", "sub", "mul", "div"):
            raise NoLanes(f"lanes have no {expr.primitive}")
        divisor = expr.operands[-1]
        if expr.primitive == "div" and divisor == BATCH and self._is_single:
            return self.pair(expr.operands[0])
        if expr.primitive == "div" and self._is_fast and isinstance(divisor, Leaf) and divisor.name in self._numbers:
            return _Pair(self.pair(expr.operands[0]).value * self.slots[_inverse(divisor.name)])
        pairs = [self.pair(operand) for operand in expr.operands]
        powers = [pair for pair in pairs if pair.other]
        if len(powers) > 1:
            raise NoLanes("lanes compute one power in an expression")
        if powers:  # one slot for each operand without a power, which value and other share
            pairs = [pair if pair.other else _Pair(self._let(pair.value)) for pair in pairs]
        value, other = (Apply(expr.primitive, operands) for operands in zip(*((a, b or a) for a, b in pairs)))
        return _Pair(value, other if powers else None)

    def _sure(self, expr: Expr) -> Leaf:
        """The slot of a value without powers."""
        value, other = self.pair(expr)
        if other:
            raise NoLanes("lanes compute no power of a power")
        return value if isinstance(value, Leaf) and int(value.name) >= self._first else self._let(value)

    def _power(self, base: Expr, exponent: Expr) -> _Pair:
        if exponent not in (SQUARE, ROOT):
            raise NoLanes("lanes have squares and roots")
        x = self._sure(base)
        if self._is_fast:
            return _Pair(self._let(x * x if exponent == SQUARE else call("sqrt", x)))
        self._mark_outside(x, 64 if exponent == SQUARE else 128)
        return self._square(x) if exponent == SQUARE else self._root(x)

    def _square(self, x: Leaf) -> _Pair:
        r = self._let(x * x)
        return _Pair(r, self._let(call("fnma", call("fnma", x, x, r), WIDER, r)))

    def _root(self, x: Leaf) -> _Pair:
        """The root is r + (x - r * r) * h, where h is nearly 1 / (2 * r).

        So r need not be the double nearest to the root: if it is within 0.51 units, `other` is the only other double
        that libm may return. h is multiplied by a number above 0.5 / (1 - 0.51307), which is 1.02684.

        For lanes of eight, two steps of Newton's method reduce the error of g to 2^-27 and 2^-53. A third gives r,
        within 0.51 units. These eleven operations take half the time of the processor's root. Adding 2^-1022 keeps the
        estimate for 0 finite, and changes no x from 2^-969 on.

        In narrower lanes, r is the processor's root. Subtracting its bits from a constant gives c / r for c = 0.717
        with an error of at most 1.51 %. One step of Newton's method makes this c * c / r, which is 0.5142 / r, with an
        error of at most 0.023 %.
        """
        if self._width == 8:
            estimate = self._let(call("rsqrt", x + 2.0**-1022))
            g, h = self._let(x * estimate), self._let(0.5 * estimate)
            lack = self._let(call("fnma", g, h, 0.5))
            g, h = self._let(call("fma", g, lack, g)), self._let(call("fma", h, lack, h))
            for _ in range(2):
                g = self._let(call("fma", call("fnma", g, g, x), h, g))
            r, wider_h = g, h * 1.027
        else:
            r = self._let(call("sqrt", x))
            guess = self._let(call("minus", GUESS, r))
            wider_h = guess * call("fnma", r, guess, 1.4342245291445828)
        return _Pair(r, self._let(call("fma", call("fnma", r, r, x), wider_h, r)))
