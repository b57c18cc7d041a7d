"""The training loop in Python: the state that a failed turn leaves behind, and the hooks for subclasses."""

from __future__ import annotations

import math
from array import array

import pytest

from engines.columns import Column
from engines.kernel.program import Stretch
from engines.kernel.python_kernel import PythonKernel, read_row


def stretch_of(rows=3, first_row=0, steps=5, batch=1, taken=0, rate=0.5):
    """Return a Stretch over the rows 1.0, 2.0, 3.0, …"""
    cells = array("d", [1.0 + row for row in range(rows)])
    rates, losses = array("d", [rate] * ((taken + steps) // batch)), array("d", [0.0] * steps)
    return Stretch((Column(cells, 1),), first_row, steps, batch, taken, rates, losses)


def buffers_of(parameter=10.0, gradient=0.0):
    return array("d", [0.0]), array("d", [parameter]), [], array("d", [0.0]), array("d", [gradient])


class Product(PythonKernel):
    """A kernel with the loss x * p, which raises in the forward or backward pass over the row with the given input."""

    def __init__(self, forward_raises_at=None, backward_raises_at=None, error=ZeroDivisionError):
        super().__init__(0)
        self.forward_raises_at, self.backward_raises_at, self.error = forward_raises_at, backward_raises_at, error

    def values(self, x, p, w, y):
        if x[0] == self.forward_raises_at:
            raise self.error("forward")
        y[0] = -x[0]
        return x[0] * p[0]

    def gradients(self, x, p, w, q):
        q[0] += x[0]
        if x[0] == self.backward_raises_at:
            raise self.error("backward")


@pytest.mark.parametrize("error", [ZeroDivisionError, OverflowError, ValueError])
@pytest.mark.parametrize("where", ["forward_raises_at", "backward_raises_at"])
def test_a_turn_that_raises_ends_training_with_nan(where, error):
    """If the backward pass raises, the loss that was already recorded does not count."""
    (x, p, w, y, q), stretch = buffers_of(), stretch_of()
    assert Product(**{where: 2.0}, error=error).train((x, p, w, y, q), stretch) == 1
    assert stretch.losses[0] == 10.0
    assert math.isnan(stretch.losses[1])
    assert list(stretch.losses[2:]) == [0.0, 0.0, 0.0]
    assert (x[0], p[0]) == (2.0, 9.5)


def test_any_other_error_leaves_the_buffers_at_the_failing_step():
    (x, p, w, y, q), stretch = buffers_of(), stretch_of()
    with pytest.raises(KeyError):
        Product(backward_raises_at=3.0, error=KeyError).train((x, p, w, y, q), stretch)
    assert (x[0], p[0], q[0]) == (3.0, 10.0 - 0.5 - 1.0, 3.0)


def test_a_subclass_may_store_parameters_elsewhere():
    class Elsewhere(PythonKernel):
        """Takes two rows per turn."""

        def enter(self, t):
            self.parameter = t.p[0]

        def turn(self, t):
            rows = min(2, t.stretch.steps - t.step)
            for ahead in range(rows):
                read_row(t.x, t.stretch.columns, t.index(ahead))
                self.parameter += t.x[0]
            for _ in range(rows):
                t.record(self.parameter)
            return True

        def leave(self, t):
            t.p[0] = self.parameter

    (x, p, w, y, q), stretch = buffers_of(parameter=0.0), stretch_of(rows=3, steps=5)
    assert Elsewhere(0).train((x, p, w, y, q), stretch) == 5
    assert list(stretch.losses) == [3.0, 3.0, 7.0, 7.0, 9.0]
    assert (x[0], p[0]) == (2.0, 9.0)
