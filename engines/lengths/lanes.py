"""Optimiser -> the update of a vector of parameters: the same expressions, without powers.

The result is a list of statements over doubles, for the lanes of a vector, in the language of `graph/expr.py`. Each has
a *slot*, whose number is its name in later statements. The first slots are the buffers and the numbers of an update
that all lanes share. The language has further primitives: `fma(a, b, c)` is a * b + c, `fms(a, b, c)` is a * b - c, and
`fnma(a, b, c)` is c - a * b, all rounded once. `sqrt` is the processor's; `rsqrt`, of AVX-512, is 1 / sqrt(x) with a
relative error of at most 2^-14. `xor` and `or` are bitwise, and `minus` subtracts bits as integers.

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

**Quotients.** A factor d divides in all lanes. So z, the double nearest to 1 / d, is computed once. Three more
operations give the double nearest to x / d, faster than a division: q = x * z, r = q * d - x, and the result is q - r *
z (Markstein, 1990; Brisebarre, Muller and Raina, "Accelerating correctly rounded floating-point division when the
divisor is known in advance", 2004).

Example with three decimal digits and d = 0.6: z is 1.67. x = 1.37 gives q = 2.29 and r = 0.004. 2.29 - 0.004 * 1.67 =
2.28332 rounds to 2.28, and so does 1.37 / 0.6 = 2.28333...

Why it is the nearest: let 1 <= x, d < 2. z differs from 1 / d by at most 2^-54. So q - r * z, before it is rounded,
differs from x / d by at most 2^-54 * d of the distance between q and x / d. This matters only if the middle of two
doubles lies in between.

- Near the middle that is half a unit in the last place from q, this difference is 2^-55 * d units. But x / d is at
  least 2^-53 / d units from a middle, which is more, because d < 2.
- q is further away than a unit only if x < d, and by less than 1.5 - j * 2^-53 units, where x = 2 - j * 2^-52. So x / d
  is at least j * 2^-53 units from the next middle. The difference, with that from rounding r, is below 5 * 2^-54 units,
  which is less if j > 2. j = 2 leaves d = 2 - 2^-52, for which q is 1, r has no error, and the result is right.

A factor is a share, above 2^-100 and at most 1; z is NaN for others. So a quotient is 0 only if x is 0.
"""

from __future__ import annotations

import math
import struct
from typing import Optional

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


def numbers(optimiser: Optimiser) -> tuple[str, ...]:
    """The names of the slots after the buffers: numbers of an update, and the inverses of its factors."""
    inverses = (f"1 / {factor}" for factor in optimiser.factors)
    return (RATE.name, BATCH.name, UPDATE.name, *optimiser.factors, *inverses)


class Lanes:
    """The update of a vector. The leaves of its expressions are slots."""

    def __init__(self, optimiser: Optimiser, width: int, *, is_single: bool, is_fast: bool) -> None:
        """width: doubles in the vector. is_single: whether a batch is one step. is_fast: whether last bits may differ.

        Raises NoLanes for functions and exponents without lanes, and for two powers in one expression, unless width is
        1.
        """
        self.width, self._is_single, self._is_fast, self._optimiser = width, is_single, is_fast, optimiser
        buffers, self.numbers = ("p", "q", *optimiser.states), numbers(optimiser)
        self._slots = {name: Leaf(str(number)) for number, name in enumerate((*buffers, *self.numbers))}
        """Number, or buffer -> the slot of its present value."""
        self.statements: list[Expr] = []
        """The values of the slots after the buffers and the numbers."""
        self.unsure: Optional[Leaf] = None
        """The slot that is not 0 in unsure lanes; None if all lanes are sure."""
        self._equal: dict[Expr, Leaf] = {}
        self._ranges: dict[Leaf, bool] = {}
        """Slot -> whether it is a quotient, whose sign is ignored. A lane is unsure unless each number is 0 or
        at least 2^-128, or 2^-800 for a quotient, and their sum is at most 2^64."""
        for target, expr in {**optimiser.changes, "q": Literal(0.0)}.items():
            value, other = self._pair(expr)
            self._slots[target] = self._add(value)
            if other != value:
                self._mark(call("xor", self._slots[target], other))
        if self._ranges:
            self._mark_out_of_range()
        self.results = [self._slots[name] for name in buffers]
        """The slots of the buffers' new contents."""

    def factors(self) -> list[Expr]:
        """The numbers after RATE, BATCH and UPDATE, each over the slots before it. For a width of 1."""
        values = [self._pair(expr)[0] for expr in self._optimiser.factors.values()]
        for factor in map(self._slots.__getitem__, self._optimiser.factors):
            inverse = where(factor > 2.0**-100, where(factor > 1.0, math.nan, 1.0 / factor), math.nan)
            values.append(1.0 / factor if self._is_fast else inverse)  # NaN if the factor is not a share
        return values

    def _add(self, expr: Expr) -> Leaf:
        """A new slot for a value."""
        self.statements.append(expr)
        return Leaf(str(len(self._slots) + len(self.statements) - 1))

    def _let(self, expr: Expr) -> Leaf:
        """The slot of a value, which equal values share."""
        if expr not in self._equal:
            self._equal[expr] = self._add(expr)
        return self._equal[expr]

    def _mark(self, bits: Expr) -> None:
        """Lanes with any of these bits are unsure."""
        self.unsure = self._add(call("or", self.unsure, bits) if self.unsure else bits)

    def _mark_out_of_range(self) -> None:
        """Mark NaN, and numbers outside their ranges: one comparison for the smallest, and one for the sum.

        Subtracting 1 from the bits of 0.0 or -0.0 gives NaN, which a minimum ignores. Other numbers hardly change.
        """
        least: Expr = Literal(2.0**-128)
        sizes: list[Expr] = []
        for x, is_quotient in self._ranges.items():
            size = self._let(call("abs", x)) if is_quotient else x
            smaller = self._let(call("minus", size * 2.0**672 if is_quotient else size, SMALLEST))
            least = self._let(where(smaller < least, smaller, least))
            sizes.append(size)
        total = self._named(sum(sizes[1:], sizes[0]))
        self._mark(least - 2.0**-128)
        self._mark(call("xor", where(total < 2.0**64, total, 2.0**64), total))

    def _pair(self, expr: Expr) -> tuple[Expr, Expr]:
        """The expression over slots: with the power nearest to the exact one, and with the other that libm may return.

        They are equal without a power. A single lane calls libm.
        """
        if not isinstance(expr, Apply):
            value = self._slots[expr.name] if isinstance(expr, Leaf) else expr
            return value, value
        first, divisor = expr.operands[0], expr.operands[-1]
        if expr.primitive == "div" and divisor == BATCH and self._is_single:
            return self._pair(first)
        factor = divisor.name if expr.primitive == "div" and isinstance(divisor, Leaf) else ""
        if factor in self._optimiser.factors and self._is_fast:
            return self._pair(first * Leaf(f"1 / {factor}"))
        pairs = [self._pair(operand) for operand in expr.operands]
        if self.width > 1:
            if expr.primitive not in ("add", "sub", "mul", "div", "pow"):
                raise NoLanes(f"lanes have no {expr.primitive}")
            if sum([expr.primitive == "pow", *(value != other for value, other in pairs)]) > 1:
                raise NoLanes("lanes compute one power in an expression")
            if expr.primitive == "pow":
                return self._power(self._let(pairs[0][0]), divisor)
            pairs = [(self._named(value), self._named(other)) for value, other in pairs]
            if factor in self._optimiser.factors:
                dividend, other_dividend = pairs[0]
                return self._quotient(dividend, factor), self._quotient(other_dividend, factor)
        value, other = (Apply(expr.primitive, operands) for operands in zip(*pairs))
        return value, other

    def _quotient(self, x: Expr, factor: str) -> Leaf:
        divisor, inverse = self._slots[factor], self._slots[f"1 / {factor}"]
        near = self._let(x * inverse)
        quotient = self._let(call("fnma", call("fms", near, divisor, x), inverse, near))
        self._ranges.setdefault(quotient, True)
        return quotient

    def _named(self, expr: Expr) -> Expr:
        return self._let(expr) if isinstance(expr, Apply) else expr

    def _power(self, x: Leaf, exponent: Expr) -> tuple[Expr, Expr]:
        if exponent not in (SQUARE, ROOT):
            raise NoLanes("lanes have squares and roots")
        if self._is_fast:
            value = self._let(x * x if exponent == SQUARE else where(x < math.inf, self._near_root(x)[0], x))
            return value, value
        if exponent == ROOT:
            self._ranges[x] = False
            return self._root(self._let(x + 0.0))  # pow(-0.0, 0.5) is 0.0
        r = self._let(x * x)
        self._ranges[r] = False
        return r, call("fnma", call("fnma", x, x, r), WIDER, r)

    def _root(self, x: Leaf) -> tuple[Expr, Expr]:
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
        r, half = self._near_root(x)
        if self.width == 8:
            r = self._let(call("fma", call("fnma", r, r, x), half, r))
            wider_h = half * 1.027
        else:
            guess = self._let(call("minus", GUESS, r))
            wider_h = guess * call("fnma", r, guess, 1.4342245291445828)
        return r, call("fma", call("fnma", r, r, x), wider_h, r)

    def _near_root(self, x: Leaf) -> tuple[Leaf, Leaf]:
        """The root, or nearly, and half of its inverse, or nearly. The latter is for lanes of eight."""
        if self.width < 8:
            r = self._let(call("sqrt", x))
            return r, r
        estimate = self._let(call("rsqrt", x + 2.0**-1022))
        g, h = self._let(x * estimate), self._let(0.5 * estimate)
        lack = self._let(call("fnma", g, h, 0.5))
        g, h = self._let(call("fma", g, lack, g)), self._let(call("fma", h, lack, h))
        return self._let(call("fma", call("fnma", g, g, x), h, g)), h
