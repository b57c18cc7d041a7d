"""Value graph -> tape: the row order, refusals, marks left on Values, and the checker."""

from __future__ import annotations

import math
from array import array

import pytest

from tests.engines.graphs import NAMED
from zoomgrad import engines
from zoomgrad.engines.api import CyclicGraph
from zoomgrad.engines.graph.check import BrokenTape, check
from zoomgrad.engines.graph.linearize import linearize
from zoomgrad.engines.graph.tape import INPUT, NONE, PARAMETER, Tape, codes, names
from zoomgrad.engines.graph.value import Value
from zoomgrad.engines.kernel import c_tree
from zoomgrad.engines.nn import bind, squared_error
from zoomgrad.engines.straight.c_source import c_source
from zoomgrad.engines.straight.lower import lower
from zoomgrad.engines.straight.pieces import Form
from zoomgrad.engines.straight.published import published_source


def text(tape):
    return "\n".join(tape.lines()) + "\n"


def mlp_tape():
    model = bind(Value).MLP(1, [1, 1])
    inputs = [Value(1.0) for _ in range(2)]
    output = model(inputs[:1])
    loss = squared_error([output], inputs[1:])
    return linearize(loss, inputs=inputs, parameters=model.parameters(), outputs=[output])


# --- golden text -------------------------------------------------------------------------------------------------


def test_text(golden):
    golden("tape-mlp.txt", text(mlp_tape()))


@pytest.fixture
def fixed_text_by_name(monkeypatch):
    """An `#include` replaces each file that is the same for every graph."""
    monkeypatch.setattr(c_tree, "read", '#include "{}"'.format)


def test_c(golden, fixed_text_by_name):
    """The functions are small, so the text shows how values pass between them."""
    source = c_source(lower(mlp_tape()), Form(piece=6, expression=4))
    golden("mlp.c", "".join(source.units))


def test_c_as_first_published(golden, fixed_text_by_name):
    """The published form has one statement per row and per adjoint, in the tape's order."""
    golden("mlp-published.c", "".join(published_source(mlp_tape()).units))


# --- canonical order ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", NAMED, ids=lambda graph: graph.name)
def test_the_order_is_that_of_backward(graph):
    """The same order as in `backward` gives compiled gradients the reference's bits."""
    leaves = [Value(x) for x in graph.numbers]
    (root,) = graph.build(Value, leaves)
    tape = linearize(root, inputs=leaves)
    assert [names()[op] for op in tape.ops] == [
        v._name or ("input" if v in leaves else "constant") for v in root.topo()
    ]


# --- refusals ----------------------------------------------------------------------------------------------------


def clean(*roots):
    """Whether all Values below these roots have dropped their row."""
    return all(v._row == -1 for root in roots for v in _below(root))


def _below(root):
    found, stack = set(), [root]
    while stack:
        v = stack.pop()
        if v not in found:
            found.add(v)
            stack += v._prev
    return found


def refused(Value):
    """Name -> loss, other arguments, error and message; and the Values, which must keep no mark."""
    a, b, stranger = Value(1.0), Value(2.0), engines.load("tuple").Value(3.0)
    loss = a * b + a
    return {
        "a loss of another engine": (stranger, {}, TypeError, r"the loss is Value\(data=3.0, grad=0\), not a Val"),
        "a number": (2.0, {}, TypeError, r"the loss is 2.0, not a Value of a compiled engine\n  Build the graph from"),
        "an output": (loss, {"outputs": [loss, stranger]}, TypeError, r"outputs\[1\] is Value"),
        "an input": (loss, {"inputs": [stranger]}, TypeError, r"inputs\[0\] is Value"),
        "a parameter": (loss, {"inputs": [a], "parameters": [stranger]}, TypeError, r"parameters\[0\] is Value"),
        "no leaf": (loss, {"inputs": [a, loss]}, ValueError, r"inputs\[1\] is the result of '\+'\n  Name the leaf"),
        "twice": (loss, {"inputs": [a, b, a]}, ValueError, r"inputs\[2\] is already inputs\[0\]\n  Name each leaf"),
        "both": (loss, {"inputs": [a, b], "parameters": [b]}, ValueError, r"parameters\[0\] is already inputs\[1\]"),
        "an infinite constant": (loss + math.inf, {"inputs": [a, b]}, ValueError, "finite"),
        "an unknown operation": (Value(2.0, (a,), "sine"), {}, ValueError, r"'sine' of .* is not in the op table\n"),
        "a leaf's name": (Value(2.0, (a,), "input"), {}, ValueError, "the operation 'input' of .* is not in the op"),
    }, loss


@pytest.mark.parametrize("recorder", dict.fromkeys([Value, engines.load("bytecode").Value]), ids=lambda v: v.__module__)
@pytest.mark.parametrize("why", refused(Value)[0])
def test_what_cannot_be_recorded_is_refused(recorder, why):
    cases, whole = refused(recorder)
    loss, leaves, error, message = cases[why]
    with pytest.raises(error, match=message):
        linearize(loss, **leaves)
    assert clean(whole)


@pytest.mark.parametrize("outputs", [False, True], ids=["below the loss", "below an output"])
def test_a_cycle_is_refused(outputs):
    a, other = Value(1.0), Value(2.0)
    b = a + 1.0
    c = b * 2.0
    a._prev = (c,)
    with pytest.raises(CyclicGraph, match="cycle in the graph"):
        linearize(*([other] if outputs else [c]), outputs=[c] if outputs else [])
    assert clean(c, other)
    a._prev = ()
    assert len(linearize(c, inputs=[a])) == 5


# --- the checker -------------------------------------------------------------------------------------------------


def tape(*rows, loss=None, outputs=()):
    """Return a Tape of rows (name, left operand, right operand, number) with one input and one parameter."""
    code, ops, constants = codes(), bytearray(), []
    left, right, index = (array("i") for _ in range(3))
    for name, a, b, number in rows:
        is_constant = number is not None and code[name] not in (INPUT, PARAMETER)
        ops.append(code[name])
        left.append(a)
        right.append(b)
        index.append(len(constants) if is_constant else NONE if number is None else number)
        constants += [number] * is_constant
    loss = len(rows) - 1 if loss is None else loss
    return Tape(ops, left, right, index, constants, loss, tuple(outputs), 1, 1)


X, P, TWO = ("input", -1, -1, 0), ("parameter", -1, -1, 0), ("constant", -1, -1, 2.0)

BROKEN = {
    "an operand comes later": ([X, ("+", 0, 2, None), P, ("*", 1, 2, None)], r"%1 \(\+.*an operand comes later"),
    "its own operand": ([X, ("+", 0, 1, None)], r"%1 .*an operand comes later"),
    "one operand too few": ([X, ("+", 0, -1, None)], r"%1 \(\+.*other operands"),
    "a power without a number": ([X, ("**", 0, -1, None)], r"%1 .*or no number"),
    "no such input": ([("input", -1, -1, 1)], r"%0 .*there are only 1"),
    "an infinite constant": ([X, ("constant", -1, -1, float("inf")), ("+", 0, 1, None)], r"%1 .*must be finite"),
    "a dangling row": ([X, TWO, ("*", 0, 0, None)], r"%1 \(constant.*nothing reads it"),
}


@pytest.mark.parametrize("why", BROKEN)
def test_a_broken_tape_names_its_row(why):
    rows, message = BROKEN[why]
    with pytest.raises(BrokenTape, match=rf"^row {message}"):
        check(tape(*rows))


@pytest.mark.parametrize("row", [-1, 2, 9])
def test_the_roots_are_rows(row):
    with pytest.raises(BrokenTape, match=rf"the loss is %{row}, but the tape ends after 2 rows"):
        check(tape(X, ("+", 0, 0, None), loss=row))
    with pytest.raises(BrokenTape, match=rf"outputs\[1\] is %{row}, but the tape ends after 2 rows"):
        check(tape(X, ("+", 0, 0, None), outputs=(0, row)))
