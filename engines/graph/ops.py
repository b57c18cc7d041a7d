"""The op table: for each operation, the value it computes and its contributions to the operands' gradients, as data.

One row adds an op to every compiled engine; a method on the recording Value makes it callable. A contribution is a
partial derivative times `G`, the gradient of the result, in the reference's exact order of operations. Contributions
are pure expressions, so back ends can inline, reorder and drop them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Callable

from zoomgrad.engines.graph.expr import OUT, A, B, Expr, G, K, call, calls, function, where


@dataclass(frozen=True)
class Op:
    """A row of the table."""

    name: str
    forward: Expr
    """Over A, B and K."""
    contributions: tuple[Expr, ...]
    """Over A, B, K, OUT and G: the term added to each operand's gradient."""
    takes_constant: bool = False
    """Whether a row of the tape carries a number, K."""

    @property
    def arity(self) -> int:
        return len(self.contributions)

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """All expressions of the row."""
        return (self.forward, *self.contributions)

    @cached_property
    def compute(self) -> Callable[..., float]:
        """`forward` as a Python function of (a, b, k)."""
        return function(self.forward)

    @cached_property
    def contribute(self) -> Callable[..., Any]:
        """`contributions` as a Python function of (a, b, k, out, g). It returns a number, or a pair."""
        return function(*self.contributions)


OPS = {
    op.name: op
    for op in (
        Op("+", A + B, (G, G)),
        Op("*", A * B, (B * G, A * G)),
        Op("**", call("pow", A, K), ((K * call("pow", A, K - 1.0)) * G,), takes_constant=True),
        # NaN is not below 0, so it stays NaN. The contribution is a product, so infinity times 0 gives NaN.
        Op("ReLU", where(A < 0.0, 0.0, A), ((OUT > 0.0) * G,)),
        Op("tanh", call("tanh", A), ((1.0 - OUT * OUT) * G,)),
        Op("exp", call("exp", A), (OUT * G,)),
        Op("log", call("log", A), ((1.0 / A) * G,)),
        Op("sigmoid", 1.0 / (1.0 + call("exp", -A)), ((OUT * (1.0 - OUT)) * G,)),
        # The other operand gets 0.0, not 0 * G, which would turn an infinite gradient into NaN.
        Op("max", where(A > B, A, B), (where(A > B, G, 0.0), where(A > B, 0.0, G))),
    )
}

LIBM = sorted(
    {(call.primitive, len(call.operands)) for op in OPS.values() for expr in op.exprs for call in calls(expr)}
)
"""The libm functions that the table calls, each with its number of arguments."""
