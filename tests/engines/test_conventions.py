"""micrograd's conventions where mathematics leaves the gradient open, as literal numbers.

The literals keep `tuple` from being compared with itself. Elsewhere `test_every_op.py` compares `tuple` with
derivatives, which are not defined at a kink.
"""

import math

import pytest

from tests.engines.ladder import of_each_value
from zoomgrad import engines


@pytest.fixture(params=of_each_value())
def Value(request):
    return engines.load(request.param).Value


def same(found, expected):
    return found == expected or (found != found and expected != expected)


@pytest.mark.parametrize(
    ("a", "data", "gradient"),
    [(0.0, 0.0, 0.0), (-0.0, 0.0, 0.0), (5e-324, 5e-324, 1.0), (-1.0, 0.0, 0.0), (math.nan, math.nan, 0.0)],
)
def test_relu(Value, a, data, gradient):
    leaf = Value(a)
    out = leaf.relu()
    out.backward()
    assert same(out.data, data)
    assert leaf.grad == gradient


def test_relus_gradient_is_a_multiplication(Value):
    """Below 0, an infinite gradient becomes 0 * inf, which is NaN."""
    leaf = Value(-1.0)
    (leaf.relu() * math.inf).backward()
    assert math.isnan(leaf.grad)


@pytest.mark.parametrize(
    ("a", "b", "data", "gradients"),
    [
        (2.0, 1.0, 2.0, (1.0, 0.0)),
        (1.0, 2.0, 2.0, (0.0, 1.0)),
        (2.0, 2.0, 2.0, (0.0, 1.0)),
        (math.nan, 1.0, 1.0, (0.0, 1.0)),
        (1.0, math.nan, math.nan, (0.0, 1.0)),
    ],
    ids=["left", "right", "a tie goes right", "NaN on the left", "NaN on the right"],
)
def test_max(Value, a, b, data, gradients):
    left, right = Value(a), Value(b)
    out = left.max(right)
    out.backward()
    assert same(out.data, data)
    assert (left.grad, right.grad) == gradients


def test_max_gives_the_other_operand_nothing(Value):
    """0 times an infinite gradient would be NaN."""
    left, right = Value(2.0), Value(1.0)
    (left.max(right) * math.inf).backward()
    assert (left.grad, right.grad) == (math.inf, 0.0)


def test_a_value_that_is_both_operands_gets_both_contributions(Value):
    a = Value(3.0)
    (a * a).backward()
    assert a.grad == 6.0
    b = Value(3.0)
    b.max(b).backward()
    assert b.grad == 1.0
