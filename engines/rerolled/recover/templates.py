"""Templates: the expressions of terms, over at most three operands. Their language is that of the op table."""

from __future__ import annotations

from collections.abc import Mapping

from zoomgrad.engines.graph.expr import INFIX, Apply, Expr, Leaf

SLOTS = tuple(Leaf(str(slot)) for slot in range(3))
"""The operands of a template."""
IDENTITY = SLOTS[0]


def substitute(expr: Expr, leaf_to: Mapping[Leaf, Expr]) -> Expr:
    """Replace the leaves of an expression by other expressions."""
    if isinstance(expr, Apply):
        return Apply(expr.primitive, tuple(substitute(operand, leaf_to) for operand in expr.operands))
    return leaf_to[expr] if isinstance(expr, Leaf) else expr


def size(expr: Expr) -> int:
    """The number of primitives in an expression."""
    return 1 + sum(map(size, expr.operands)) if isinstance(expr, Apply) else 0


def is_cheap(expr: Expr) -> bool:
    """Whether an expression has only additions, multiplications, comparisons and choices: no division, no call."""
    if not isinstance(expr, Apply):
        return True
    return expr.primitive in _CHEAP and all(map(is_cheap, expr.operands))


_CHEAP = {*INFIX, "where"} - {"div"}
