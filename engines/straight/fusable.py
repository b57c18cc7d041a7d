"""Code -> the number of sums in a step that a compiler could fuse with a product under `-fma`.

A fused multiply-add replaces a sum if one of its operands is a product. It saves computing the product only if nothing
else reads or stores it. Example: of the sums in

    p = a * b;   s = p + c;   q = d * e;   t = q + s;   u = q * t;

both are fusable, but only `s` saves its product. The update of parameters is not part of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from zoomgrad.engines.graph.expr import Apply, Expr, Leaf
from zoomgrad.engines.graph.ops import OPS
from zoomgrad.engines.graph.tape import LEAVES, Tape
from zoomgrad.engines.straight.lower import ACCUMULATE, Code
from zoomgrad.engines.straight.published import WITHOUT_GRADIENT

SUMS = ("add", "sub")
PRODUCT = "mul"


class Fusable(NamedTuple):
    """Sums of a step with a product among their operands."""

    forward: int
    backward: int
    forward_alone: int
    """Sums among them whose product nothing else reads or stores."""
    backward_alone: int


def fusable(code: Code) -> Fusable:
    """Count in straight-line code. Adding to a parameter's gradient is also a sum, possibly of a product."""
    counts = {False: [0, 0], True: [0, 0]}
    first, is_product = code.leaves, bytearray(len(code.reads))
    for index, (kind, *operands) in enumerate(code.instructions):
        if kind == PRODUCT:
            is_product[first + index] = 1
        elif kind in SUMS or kind == ACCUMULATE:
            # The first operand of "accumulate" is the parameter's index.
            products = [value for value in operands[kind == ACCUMULATE :] if is_product[value]]
            if products:
                count = counts[index >= code.backward]
                count[0] += 1
                count[1] += any(code.reads[value] == 1 for value in products)
    return _gathered(counts[False], counts[True])


def fusable_as_published(tape: Tape) -> Fusable:
    """Count in the published form, which adds every adjoint, including the first, to a gradient in memory.

    It stores the value of every row in a global array, so it can save only products within a statement.
    """
    forward, backward = [0, 0], [0, 0]
    of_code = (*[None] * len(LEAVES), *OPS.values())
    is_product = [op is not None and _is_product(op.forward) for op in map(of_code.__getitem__, tape.ops)]
    for row, (code, *operands) in enumerate(zip(tape.ops, tape.left, tape.right)):
        op = of_code[code]
        if op is None:
            continue
        products = {leaf for leaf, operand in zip("ab", operands) if operand >= 0 and is_product[operand]}
        _count(op.forward, products, forward)
        for operand, adjoint in zip(operands, op.contributions if row <= tape.loss else ()):
            if tape.ops[operand] not in WITHOUT_GRADIENT:
                _count(adjoint, products, backward)
                if _is_product(adjoint):  # `grad[operand] +=` it
                    backward[:] = backward[0] + 1, backward[1] + 1
    return _gathered(forward, backward)


def _count(expr: Expr, products: set[str], counts: list[int]) -> None:
    """Add the expression's sums to the counts. products: names of leaves that are products."""
    if not isinstance(expr, Apply):
        return
    if expr.primitive in SUMS:
        within = any(map(_is_product, expr.operands))
        named = any(isinstance(operand, Leaf) and operand.name in products for operand in expr.operands)
        counts[:] = counts[0] + (within or named), counts[1] + within
    for operand in expr.operands:
        _count(operand, products, counts)


def _is_product(expr: Expr) -> bool:
    return isinstance(expr, Apply) and expr.primitive == PRODUCT


def _gathered(forward: Sequence[int], backward: Sequence[int]) -> Fusable:
    return Fusable(forward[0], backward[0], forward[1], backward[1])
