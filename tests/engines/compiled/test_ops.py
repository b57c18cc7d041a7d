"""The op table: one row adds an op to every compiled engine."""

from __future__ import annotations

import pytest

from tests.engines.compiled.compiling import COMPILED, usable
from zoomgrad.engines.graph import value
from zoomgrad.engines.graph.expr import A, G, call
from zoomgrad.engines.graph.ops import OPS, Op
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


# --- an added op -------------------------------------------------------------------------------------------------


@pytest.fixture
def sine(monkeypatch):
    """Add an op: these two lines are enough."""
    monkeypatch.setitem(OPS, "sin", Op("sin", call("sin", A), (call("cos", A) * G,)))
    monkeypatch.setattr(Value, "sin", lambda self: value._unary("sin", self), raising=False)


@pytest.mark.parametrize("name", COMPILED)
def test_an_added_op_runs_on_every_engine(sine, name):
    engine = usable(name)
    a, b = Value(0.5), Value(-1.25)
    loss = (a * b).sin() * a.sin() + (b.sin() ** 2).exp()
    loss.backward()
    assert a.sin()._op == "sin"
    program = engine.compile(loss, inputs=[], parameters=[a, b])
    assert program.forward() == loss.data
    program.backward()
    assert list(program.gradients) == [a.grad, b.grad]
