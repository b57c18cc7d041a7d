"""The op table is the one place: an op more is a row more, and an op that is wrong does not pass."""

from __future__ import annotations

import math
from functools import cache

import pytest

from engines.graph import value
from engines.graph.expr import A, B, G, call
from engines.graph.ops import OPS, Op
from engines.graph.value import Value
from tests.engines.compiled.compiling import COMPILED, ONE_OF_EACH_KIND, compiled, difference, reference, usable
from tests.engines.graphs import NAMED, Graph, classifier

EXPONENT = 3
STARTS = (1.3, 0.6)
"""Where every op of the table is smooth."""


def apply(op, operands):
    """An op of the table over Values, whatever it is called on them."""
    if op.takes_constant:
        out = Value(op.compute(operands[0].data, None, EXPONENT), tuple(operands), op.name)
        out._constant = EXPONENT
        return out
    return {1: value._unary, 2: value._binary}[op.arity](op.name, *operands)


def gradient_errors(program):
    """For each parameter, the relative difference between backward's gradient and a central difference."""
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


@cache
def all_ops(name):
    """One program for all ops, each over leaves of its own: op -> the largest error of its operands' gradients."""
    engine, leaves, total = usable(name), {}, None
    for op in OPS.values():
        leaves[op.name] = [Value(x) for x in STARTS[: op.arity]]
        out = apply(op, leaves[op.name]) * 1.5
        total = out if total is None else total + out
    program = engine.compile(total, inputs=[], parameters=[v for operands in leaves.values() for v in operands])
    errors = iter(gradient_errors(program))
    return {op: max(next(errors) for _ in operands) for op, operands in leaves.items()}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("name", COMPILED)
def test_gradients_by_finite_differences(name, op):
    assert all_ops(name)[op] < 1e-6


# --- an op more --------------------------------------------------------------------------------------------------


@pytest.fixture
def sine(monkeypatch):
    """All that it takes."""
    monkeypatch.setitem(OPS, "sin", Op("sin", call("sin", A), (call("cos", A) * G,)))
    monkeypatch.setattr(Value, "sin", lambda self: value._unary("sin", self), raising=False)


def test_an_added_op_is_recorded(sine):
    a = Value(0.5)
    b = a.sin() * 2.0
    b.backward()
    assert (b.data, a.grad) == (math.sin(0.5) * 2.0, math.cos(0.5) * 2.0)
    assert a.sin()._op == "sin"


@pytest.mark.parametrize("name", COMPILED)
def test_an_added_op_runs_on_every_engine(sine, name):
    engine = usable(name)
    a, b = engine.Value(0.5), engine.Value(-1.25)
    loss = (a * b).sin() * a.sin() + (b.sin() ** 2).exp()
    loss.backward()
    program = engine.compile(loss, inputs=[], parameters=[a, b])
    assert program.forward() == loss.data
    program.backward()
    assert list(program.gradients) == [a.grad, b.grad]
    assert max(gradient_errors(program)) < 1e-6


# --- an op that is wrong -----------------------------------------------------------------------------------------

WRONG = {
    "swapped": Op("*", A * B, (A * G, B * G)),
    "the left one is lost": Op("*", A * B, (G * 0.0, A * G)),
    "the right one is lost": Op("*", A * B, (B * G, G * 0.0)),
    "another forward": Op("*", A * B + 1e-12, (B * G, A * G)),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_the_suite_sees_a_wrong_product(monkeypatch, name, wrong):
    """Mutation: neither the comparison with the reference nor finite differences may pass it."""
    engine = usable(name)
    monkeypatch.setitem(OPS, "*", WRONG[wrong])
    graph, kinds = classifier()
    found = compiled(engine, graph, kinds, graph.numbers)
    assert difference(found, graph.numbers, reference(graph, graph.numbers))
    if wrong != "another forward":  # of which these are the right gradients
        assert max(gradient_errors(found.program)) > 1e-3


@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_the_suite_sees_a_gradient_in_another_order(monkeypatch, name):
    """Mutation: g - out * (out * g) is the same on paper, so that finite differences pass, and not to the last bit."""
    engine = usable(name)
    out = call("tanh", A)
    monkeypatch.setitem(OPS, "tanh", Op("tanh", out, (G - out * (out * G),)))
    numbers = tuple(0.1 * i for i in range(1, 20))
    graph = Graph("tanh", numbers, lambda Value, leaves: [sum(v.tanh() * 0.7 for v in leaves)])
    found = compiled(engine, graph, ["parameter"] * len(numbers), numbers)
    assert difference(found, numbers, reference(graph, numbers)).startswith("gradients")
    assert max(gradient_errors(found.program)) < 1e-6


def test_the_programs_tell_a_swap_from_the_table(monkeypatch):
    """Each of the named programs that multiplies two different leaves notices."""
    engine = usable(COMPILED[0])
    monkeypatch.setitem(OPS, "*", WRONG["swapped"])
    noticed = set()
    for graph in NAMED:
        found = compiled(engine, graph, ["parameter"] * len(graph.numbers), graph.numbers)
        if difference(found, graph.numbers, reference(graph, graph.numbers)):
            noticed.add(graph.name)
    assert noticed >= {"readme", "every_operator", "diamond", "dense_layer"}
