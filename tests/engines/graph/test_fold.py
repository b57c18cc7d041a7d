"""Constant folding: rows over constants only are computed once, with the reference's bits, unless that would raise."""

from __future__ import annotations

import math

import pytest

from tests.engines.graphs import bits
from zoomgrad import engines
from zoomgrad.engines.graph.linearize import linearize
from zoomgrad.engines.graph.passes import optimize
from zoomgrad.engines.graph.passes.fold import fold
from zoomgrad.engines.graph.tape import CONSTANT, names
from zoomgrad.engines.graph.value import Value


def lines(loss, **named):
    return list(optimize(linearize(loss, **named)).lines())


def test_constants_fold_into_one():
    a, c = Value(1.0), Value(0.3)
    assert lines(((c + 0.1) * 3.0) ** 3 * a, parameters=[a]) == [
        f"%0 = constant {((0.3 + 0.1) * 3.0) ** 3!r}",
        "%1 = parameter 0",
        "%2 = * %0 %1",
        "loss %2",
    ]


def test_a_tape_without_constant_rows_is_unchanged():
    a = Value(1.0)
    tape = linearize(a * a, parameters=[a])
    assert fold(tape) is tape
    tape = linearize(a * 2.0, parameters=[a])
    assert fold(tape) is tape


OPERATIONS = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: (a**3) * b**-0.5,
    "relu": lambda a, b: (a - b).relu(),
    "tanh": lambda a, b: a.tanh(),
    "exp": lambda a, b: b.exp(),
    "log": lambda a, b: a.log(),
    "sigmoid": lambda a, b: a.sigmoid(),
    "max": lambda a, b: a.max(b),
}


@pytest.mark.parametrize("op", OPERATIONS)
def test_a_folded_constant_has_the_reference_bits(op):
    for numbers in ((0.1, 0.7), (3.3, 1e-5), (1e10, 2.5)):
        tape = optimize(linearize(OPERATIONS[op](*map(Value, numbers))))
        expected = OPERATIONS[op](*map(engines.load("tuple").Value, numbers)).data
        assert tape.ops == bytes([CONSTANT])
        assert bits([tape.number(0)]) == bits([expected])


# --- constants that can't be computed ----------------------------------------------------------------------------


def unlucky(op, *numbers):
    """Return a graph over constants that are changed after it was built, so that folding it fails."""
    leaves = [Value(1.5) for _ in numbers]
    out = op(*leaves)
    for leaf, number in zip(leaves, numbers):
        leaf.data = number
    return out


WRONG = {
    "division by zero": (lambda a: a**-1, (0.0,), math.inf),
    "logarithm of zero": (lambda a: a.log(), (0.0,), -math.inf),
    "root of a negative number": (lambda a: a**0.5, (-1.0,), math.nan),
    "overflow of exp": (lambda a: a.exp(), (1000.0,), math.inf),
    "overflow of a product": (lambda a, b: a * b, (1e200, 1e200), math.inf),
}


@pytest.mark.parametrize("why", WRONG)
def test_an_error_is_left_for_the_step_that_raises_it(why):
    op, numbers, _ = WRONG[why]
    tape = optimize(linearize(unlucky(op, *numbers) * 2.0))
    assert names()[tape.ops[-1]] == "*"
    assert len(tape) == len(numbers) + 3
