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


def gradient_errors(program):
    """Return each parameter's relative difference between backward's gradient and a central difference."""
    program.zero_grad()
    program.forward()
    program.backward()
    errors, h = [], 1e-6
    for index, gradient in enumerate(list(program.gradients)):
        at = program.parameters[index]
        losses = []
        for moved in (at + h, at - h):
            program.parameters[index] = moved
            losses.append(program.forward())
        program.parameters[index] = at
        numeric = (losses[0] - losses[1]) / (2 * h)
        errors.append(abs(numeric - gradient) / max(1.0, abs(numeric)))
    return errors


@pytest.mark.parametrize("name", COMPILED)
def test_gradients_by_finite_differences(name):
    """One program in which each op has its own leaves."""
    engine, leaves, total = usable(name), [], None
    for op in OPS.values():
        operands = [Value(x) for x in STARTS[: op.arity]]
        leaves += operands
        out = apply(op, operands) * 1.5
        total = out if total is None else total + out
    assert max(gradient_errors(engine.compile(total, inputs=[], parameters=leaves))) < 1e-6


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
    assert max(gradient_errors(program)) < 1e-6
