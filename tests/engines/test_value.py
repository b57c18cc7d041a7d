"""The Value API as published, and what micrograd lacks: deep graphs without recursion, and an error for cycles."""

import gc
import math
from decimal import Decimal
from fractions import Fraction

import pytest

from tests.engines.graphs import every_operator
from tests.engines.ladder import of_each_value
from zoomgrad import engines
from zoomgrad.engines.api import CyclicGraph
from zoomgrad.engines.graph.value import Value as InPython

try:
    import numpy as np
except ImportError:  # on PyPy
    np = None

PUBLISHED = ("baseline", "tuple")


@pytest.fixture(params=of_each_value())
def Value(request):
    return engines.load(request.param).Value


def test_repr_label_and_op(Value):
    a = Value(2.0, label="a")
    assert repr(a) == "Value(data=2.0, grad=0)"
    assert a.label == "a"
    assert (a._op, (a * 3)._op, (a**2)._op, a.relu()._op, a.max(1)._op) == ("", "*", "**2", "ReLU", "max")


@pytest.mark.parametrize("engine", PUBLISHED)
def test_as_published_ints_stay_ints_in_gradients_too(engine):
    Value = engines.load(engine).Value
    a, b = Value(20), Value(3)
    (a * b).backward()
    assert (repr(a), repr(b)) == ("Value(data=20, grad=3)", "Value(data=3, grad=20)")


def test_children_as_published():
    a, b = (engines.load("baseline").Value(x) for x in (1.0, 2.0))
    assert (a + b)._prev == {a, b}
    assert (a * a)._prev == {a}
    a, b = (engines.load("tuple").Value(x) for x in (1.0, 2.0))
    assert (a + b)._prev == (a, b)
    assert (a * a)._prev == (a, a)


def test_nodes_in_reverse_order_by_hand_are_backward(Value):
    _, out = every_operator.of(Value)
    order = out.topo()
    out.backward()
    at_once = [v.grad for v in order]
    for v in order:
        v.grad = 0
    out.grad = 1
    for v in reversed(order):
        v._backward()
    assert [v.grad for v in order] == at_once


@pytest.mark.parametrize("engine", [*PUBLISHED, "slots", "hoisted", "replay"])
def test_a_program_may_add_an_operation_with_its_own_closure(engine):
    Value = engines.load(engine).Value
    x = Value(0.5)
    y = Value(math.sin(x.data), (x,), "sin")

    def _backward():
        x.grad += math.cos(x.data) * y.grad

    y._backward = _backward
    inner = y._backward
    calls = []

    def hooked():
        calls.append(y.grad)
        inner()

    y._backward = hooked
    (y * 3.0).backward()
    assert x.grad == math.cos(0.5) * 3.0
    assert calls == [3.0]


@pytest.mark.parametrize("without", [engines.load("local-grads").Value, InPython])
def test_a_class_without_backward_functions_refuses_a_closure(without):
    y = without(0.5) * 2
    with pytest.raises(AttributeError, match=r"(?s)no backward functions.*--engine hoisted"):
        y._backward = print


def test_gradients_accumulate_over_calls(Value):
    a = Value(3.0)
    (a * 2.0).backward()
    (a * 5.0).backward()
    assert a.grad == 7.0


def test_a_chain_of_20_000_additions_differentiates(Value):
    a = Value(1.0)
    x = a
    for _ in range(20_000):
        x = x + a
    x.backward()
    assert (x.data, a.grad) == (20_001.0, 20_001.0)
    # Freeing a deep graph must not recurse either.
    del x
    gc.collect()


def test_a_cycle_made_by_hand_is_refused(Value):
    a = Value(1.0, label="a")
    b = a + 1.0
    c = b * 2.0
    with pytest.raises(CyclicGraph, match=r"cycle in the graph: Value\(.*\) is among its own operands\n  Undo"):
        a._prev = (c,)  # `native` refuses now
        c.backward()


def test_an_exponent_may_be_any_real_number(Value):
    """The bits and the texts are those of the int or float that it equals."""
    exponents = [(Fraction(1, 2), 0.5), (Fraction(4), 4.0), (True, 1)]
    if np:
        exponents += [(np.float64(-1.5), -1.5), (np.float32(0.5), 0.5), (np.int64(3), 3), (np.uint8(2), 2)]
    for given, plain in exponents:
        results = []
        for exponent in (given, plain):
            a = Value(1.7)
            power = a**exponent
            power.backward()
            results.append((power.data, a.grad, power._op, type(power.data), type(a.grad)))
        assert results[0] == results[1], given
    for wrong in (2j, "2", None, Decimal(2), [2], Value(3.0)):
        with pytest.raises(TypeError, match=r"exponent of \*\* must be a real number, not .*\n  If"):
            Value(2.0) ** wrong
    for huge in (Fraction(-(10**400), 3), -math.inf, math.nan, 10**309):
        # A tape and C can't hold infinity or NaN as constants, and a power with a huge int takes forever.
        with pytest.raises(ValueError, match=r"exponent of \*\* must be a finite number, not .*\n  Powers"):
            Value(2.0) ** huge
