"""Arithmetic on numbers with error bounds: what float32 can make of a float64 result.

A pair (x, e) stands for a result x in float64 and a bound e on |y - x|, where y is the result that the same operations
give in float32. Both are arrays. Each operation passes on the bounds of its operands, by the largest change that they
allow, and adds its own rounding, by the standard model: fl(a op b) = (a op b)(1 + d) with |d| <= u = 2**-24, plus half
the spacing of subnormal numbers. A sum of n numbers is off by at most u times the magnitudes of its n - 1 partial sums.
In any other order, it is off by gamma(n - 1) times the sum of all magnitudes, where gamma(n) = n u / (1 - n u). With
fused operations there are fewer roundings, so the bounds hold too.

The models are those of Nicholas J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd edition, SIAM 2002:
(2.4) and (2.8) for an operation, (4.3), (4.4) and lemma 3.1 for a sum, and section 3.3 for bounds that follow the
computation.

Example: a = (1.0, 0.0) and b = (0.1, 1.5e-9), because 0.1 rounds to a float at that distance. Their product is
(0.1, 7.5e-9): 1.5e-9 from b, and 6e-9 from its own rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from engines.graph.expr import Apply, Expr, Leaf, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

U = 2.0**-24 * (1.0 + 2.0**-20)
"""The unit roundoff of float32. The margin is for the roundings of float64, in the reference and here."""
TINY = 2.0**-149
"""The spacing of subnormal floats; half of it would do."""
LARGEST = 2.0**128 - 2.0**103
"""From here on, numbers round to infinity."""


class Bounded(NamedTuple):
    """Numbers in float64, and for each a bound on the distance of the float32 result."""

    x: Any
    e: Any


class Arithmetic:
    """The primitives, and sums, over arrays of bounded numbers."""

    def __init__(self, *, is_ordered: bool) -> None:
        """is_ordered: whether float32 adds the terms of a sum in the reference's order."""
        import numpy as np

        self.np = np
        self.is_ordered = is_ordered

    def stored(self, x: Any) -> Bounded:
        """Numbers that are rounded when they are stored."""
        x = self.np.asarray(x, float)
        return self.checked(x, abs(x.astype(self.np.float32).astype(float) - x))

    def rounded(self, x: Any, e: Any) -> Bounded:
        """The result of an operation whose operands allow a change of e."""
        return self.checked(x, e + U * (abs(x) + e) + TINY)

    def checked(self, x: Any, e: Any) -> Bounded:
        """Without a bound where float32 may overflow, or where there is no number."""
        return Bounded(x, self.np.where(abs(x) + e < LARGEST, e, self.np.inf))

    def total(self, parts: Sequence[Bounded]) -> Bounded:
        """The sum of all rows of these arrays, one after the other, or in any order."""
        np = self.np
        x, e = (np.concatenate(columns) for columns in zip(*parts))
        # Adding an exact zero, such as a black pixel's product, rounds nothing, and nor does the first addition to 0.0.
        rounds = (x != 0.0) | (e != 0.0)
        rounds[0] = False
        count = rounds.sum(axis=0)
        partial = abs(np.cumsum(x, axis=0))
        sizes = partial * rounds if self.is_ordered else count * abs(x)
        # Each partial sum is off by at most the whole sum's bound, hence the divisor.
        bound = ((1.0 + U * count) * e.sum(axis=0) + U * sizes.sum(axis=0)) / (1.0 - U * count)
        largest = partial.max(axis=0) if self.is_ordered else abs(x).sum(axis=0)
        return Bounded(x.sum(axis=0), self.checked(largest, bound).e)

    def evaluator(self, expr: Expr) -> Callable[[Sequence[Bounded]], Bounded]:
        """Compile an expression to a function of its operands, element by element."""
        if isinstance(expr, Leaf):
            slot = int(expr.name)
            return lambda operands: operands[slot]
        if isinstance(expr, Literal):
            literal = self.stored(expr.number)
            return lambda operands: literal
        assert isinstance(expr, Apply)
        function = getattr(self, expr.primitive)
        parts = [self.evaluator(operand) for operand in expr.operands]
        return lambda operands: function(*(part(operands) for part in parts))

    # --- primitives, by the names of `graph.expr` --------------------------------------------------------------------

    def add(self, a: Bounded, b: Bounded) -> Bounded:
        return self.rounded(a.x + b.x, a.e + b.e)

    def sub(self, a: Bounded, b: Bounded) -> Bounded:
        return self.rounded(a.x - b.x, a.e + b.e)

    def mul(self, a: Bounded, b: Bounded) -> Bounded:
        x, e = self.rounded(a.x * b.x, abs(a.x) * b.e + abs(b.x) * a.e + a.e * b.e)
        is_exact = (_is_zero(a) | _is_zero(b)) & self.np.isfinite(a.e + b.e)  # 0.0 times infinity is NaN
        return Bounded(x, self.np.where(is_exact, 0.0, e))

    def div(self, a: Bounded, b: Bounded) -> Bounded:
        np, x = self.np, a.x / b.x
        nearest = abs(b.x) - b.e
        return self.rounded(x, np.where(nearest > 0.0, (a.e + abs(x) * b.e) / nearest, np.inf))

    def less(self, a: Bounded, b: Bounded) -> Bounded:
        """1.0 or 0.0, whose bound is 1.0 if float32 may come to the other result."""
        e = a.e + b.e
        return Bounded(self.np.less(a.x, b.x) * 1.0, ((abs(a.x - b.x) <= e) & (e > 0.0)) * 1.0)

    def greater(self, a: Bounded, b: Bounded) -> Bounded:
        return self.less(b, a)

    def where(self, condition: Bounded, then: Bounded, otherwise: Bounded) -> Bounded:
        np, is_true = self.np, condition.x != 0.0
        x, e = np.where(is_true, then.x, otherwise.x), np.where(is_true, then.e, otherwise.e)
        other = np.where(is_true, abs(otherwise.x - x) + otherwise.e, abs(then.x - x) + then.e)
        return Bounded(x, np.where(condition.e > 0.0, np.maximum(e, other), e))

    def exp(self, a: Bounded) -> Bounded:
        x = self.np.exp(a.x)
        return self.rounded(x, x * self.np.expm1(a.e))

    def log(self, a: Bounded) -> Bounded:
        np = self.np
        return self.rounded(np.log(a.x), np.where(a.x > a.e, -np.log1p(-a.e / a.x), np.inf))

    def tanh(self, a: Bounded) -> Bounded:
        # Its slope is largest at the end that is nearer to 0.
        np = self.np
        nearest = np.maximum(abs(a.x) - a.e, 0.0)
        return self.rounded(np.tanh(a.x), a.e * (1.0 - np.tanh(nearest) ** 2))

    def pow(self, a: Bounded, b: Bounded) -> Bounded:
        np, x = self.np, self.np.power(a.x, b.x)
        low, high = abs(a.x) - a.e, abs(a.x) + a.e
        ends = np.maximum(abs(high**b.x - abs(x)), abs(np.maximum(low, 0.0) ** b.x - abs(x)))
        through_zero = np.where((b.x >= 0.0) & (b.x == np.floor(b.x)), high**b.x + abs(x), np.inf)
        e = np.where(low > 0.0, ends, np.where(a.e > 0.0, through_zero, 0.0))
        # The exponent moves the result by a factor of base**b.e.
        factor = np.expm1(b.e * np.maximum(abs(np.log(np.maximum(low, 0.0))), abs(np.log(high))))
        return self.rounded(x, e + np.where(b.e > 0.0, (abs(x) + e) * factor, 0.0))


def _is_zero(a: Bounded) -> Any:
    """Whether a number is 0.0 in both."""
    return (a.x == 0.0) & (a.e == 0.0)
