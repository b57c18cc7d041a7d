"""The op table: one row adds an op to every compiled engine."""

from __future__ import annotations

import pytest

from tests.engines.compiled.compiling import COMPILED, usable
from zoomgrad.engines.graph import value
from zoomgrad.engines.graph.ops import OPS
from zoomgrad.engines.graph.value import Value

EXPONENT = 3
STARTS = (1.3, 0.6)
"""A point at which every op of the table is smooth."""


def apply(op, operands):
    """Apply an op of the table to Values, without needing the method's name."""
    if op.takes_constant:
        out = Value(op.compute(operands[0].data, None, EXPONENT), tuple(operands), op.name)
        out._constant = EXPONENT
        return out
    return {1: value._unary, 2: value._binary}[op.arity](op.name, *operands)


@pytest.mark.parametrize("name", COMPILED)
def test_every_op_has_the_recorders_bits(name):
    """One program in which each op has its own leaves."""
    engine, leaves, total = usable(name), [], None
    for op in OPS.values():
        operands = [Value(x) for x in STARTS[: op.arity]]
        leaves += operands
        out = apply(op, operands) * 1.5
        total = out if total is None else total + out
    total.backward()
    program = engine.compile(total, inputs=[], parameters=leaves)
    assert program.forward() == total.data
    program.backward()
    assert list(program.gradients) == [leaf.grad for leaf in leaves]
