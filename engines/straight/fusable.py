"""Code -> how many of its sums a compiler could fuse with a product: what `-fma` may find in a step.

A fused multiply-add replaces a sum one of whose operands is a product. It saves the product only where nothing else
reads or keeps it; else the product is computed all the same. Example: of the sums in

    p = a * b;   s = p + c;   q = d * e;   t = q + s;   u = q * t;

both are fusable, and only `s` saves its product. An update of parameters is not part of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engines.graph.expr import Apply, Expr, Leaf
from engines.graph.ops import OPS
from engines.graph.tape import Tape
from engines.straight.lower import ACCUMULATE, Code
from engines.straight.published import WITHOUT_GRADIENT

SUMS = ("add", "sub")
PRODUCT = "mul"


class Fusable(NamedTuple):
    """Sums of a step with a product among their operands."""

    forward: int
    backward: int
    forward_alone: int
    """Those of them whose product nothing else reads or keeps."""
    backward_alone: int


def fusable(code: Code) -> Fusable:
    """Of straight-line code. A parameter's gradient is a sum as well: what is added to it may be a product."""
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
    """Of the published form, which adds each adjoint to a gradient in memory, the first one as well.

    It keeps the value of every row in an array that others may read: only a product within a statement is alone.
    """
    forward, backward = [0, 0], [0, 0]
    is_product = [op in OPS and _is_product(OPS[op].forward) for op in tape.ops]
    for row, (name, *operands) in enumerate(zip(tape.ops, tape.left, tape.right)):
        if name not in OPS:
            continue
        products = {leaf for leaf, operand in zip("ab", operands) if operand >= 0 and is_product[operand]}
        _count(OPS[name].forward, products, forward)
        for operand, adjoint in zip(operands, OPS[name].contributions if row <= tape.loss else ()):
            if tape.ops[operand] not in WITHOUT_GRADIENT:
                _count(adjoint, products, backward)
                if _is_product(adjoint):  # `grad[operand] +=` it
                    backward[:] = backward[0] + 1, backward[1] + 1
    return _gathered(forward, backward)


def _count(expr: Expr, products: set[str], counts: list[int]) -> None:
    """Add the expression's sums to the counts. products: the leaves that are products themselves."""
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
