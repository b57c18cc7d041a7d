"""Constant folding: rows over constants only are computed once, unless that would raise."""

from __future__ import annotations

import pytest

from zoomgrad.engines.graph.linearize import linearize
from zoomgrad.engines.graph.passes import optimize
from zoomgrad.engines.graph.passes.fold import fold
from zoomgrad.engines.graph.tape import names
from zoomgrad.engines.graph.value import Value


def test_constants_fold_into_one():
    a, c = Value(1.0), Value(0.3)
    tape = linearize(((c + 0.1) * 3.0) ** 3 * a, parameters=[a])
    assert list(optimize(tape).lines()) == [
        f"%0 = constant {((0.3 + 0.1) * 3.0) ** 3!r}",
        "%1 = parameter 0",
        "%2 = * %0 %1",
        "loss %2",
    ]


def test_a_tape_without_constant_rows_is_unchanged():
    a = Value(1.0)
    tape = linearize(a * a * 2.0, parameters=[a])
    assert fold(tape) is tape


WRONG = {
    "division by zero": (lambda a: a**-1, 0.0),
    "logarithm of zero": (lambda a: a.log(), 0.0),
    "root of a negative number": (lambda a: a**0.5, -1.0),
    "overflow of exp": (lambda a: a.exp(), 1000.0),
    "overflow of a product": (lambda a: a * a, 1e200),
}


@pytest.mark.parametrize("why", WRONG)
def test_an_error_is_left_for_the_step_that_raises_it(why):
    """The constant changes after the graph is built, which could not be built otherwise."""
    op, number = WRONG[why]
    leaf = Value(1.5)
    out = op(leaf) * 2.0
    leaf.data = number
    tape = optimize(linearize(out))
    assert names()[tape.ops[-1]] == "*"
    assert len(tape) == 4
