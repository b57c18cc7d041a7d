"""Counts of sums that could be fused with a product, on graphs small enough to count by hand."""

from __future__ import annotations

import pytest

from zoomgrad import engines
from zoomgrad.engines.graph.value import Value
from zoomgrad.engines.nn import bind, squared_error
from zoomgrad.engines.straight.fusable import Fusable, fusable
from zoomgrad.engines.straight.lower import lower


def tape_of(loss, inputs=(), parameters=(), outputs=()):
    return engines.load("tcc").tape(loss, inputs=inputs, parameters=parameters, outputs=outputs)


def test_the_example_of_the_docstring():
    a, b, c, d, e = inputs = [Value(1.0) for _ in range(5)]
    s = a * b + c
    q = d * e
    t = q + s
    assert fusable(lower(tape_of(q * t, inputs))) == Fusable(2, 0, forward_alone=1, backward_alone=0)


def network(hidden=3):
    model = bind(Value).MLP(2, [hidden, 1])
    inputs = [Value(1.0) for _ in range(3)]
    return tape_of(squared_error([model(inputs[:2])], inputs[2:]), inputs, model.parameters())


@pytest.mark.parametrize(
    ("name", "expected"), [("rerolled-clang", (10, 13, 10, 9)), ("tcc-published", (10, 16, 0, 16))]
)
def test_a_network_has_a_fusable_sum_per_weight_in_each_pass(name, expected):
    """Recovered loops count as the straight-line code that they replace.

    Forward, a sum adds the product of each of 9 weights, and one the target's. Backward, a sum adds the adjoint of each
    of the 9 weights and 4 biases; other adjoints also read those of the biases. The published form keeps every product,
    and adds all 16 adjoints: 9 of weights, 3 of hidden values, 3 through a ReLU and 1 through the square.
    """
    assert engines.load(name).fusable(network()) == Fusable(*expected)
