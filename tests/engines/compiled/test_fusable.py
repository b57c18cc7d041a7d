"""Counts of sums that could be fused with a product, on graphs small enough to count by hand."""

from __future__ import annotations

import pytest

import engines
from engines.graph.value import Value
from engines.nn import bind, squared_error
from engines.straight.fusable import Fusable, fusable, fusable_as_published
from engines.straight.lower import lower


def tape_of(loss, inputs=(), parameters=(), outputs=()):
    return engines.load("tcc").tape(loss, inputs=inputs, parameters=parameters, outputs=outputs)


def test_the_example_of_the_docstring():
    a, b, c, d, e = inputs = [Value(1.0) for _ in range(5)]
    s = a * b + c
    q = d * e
    t = q + s
    assert fusable(lower(tape_of(q * t, inputs))) == Fusable(2, 0, forward_alone=1, backward_alone=0)


def test_a_product_with_another_reader_is_not_alone():
    """The square's adjoint is a product, which is added to q's gradient and also multiplied into p's."""
    x, p, q = Value(1.0), Value(2.0), Value(3.0)
    assert fusable(lower(tape_of((x * p + q) ** 2, [x], [p, q]))) == Fusable(1, 2, 1, 1)
    # tanh's derivative, 1 - out * out, subtracts a product.
    assert fusable(lower(tape_of((x * p).tanh() + q, [x], [p, q]))).backward == 2


def network(hidden=3):
    model = bind(Value).MLP(2, [hidden, 1])
    inputs = [Value(1.0) for _ in range(3)]
    return tape_of(squared_error([model(inputs[:2])], inputs[2:]), inputs, model.parameters())


def test_a_network_has_a_fusable_sum_per_weight_in_each_pass():
    """Forward, a sum adds the product of each of 9 weights, and one the target's. Backward, a sum adds the adjoint of
    each of the 9 weights and 4 biases; other adjoints also read those of the biases."""
    assert fusable(lower(network())) == Fusable(10, 13, forward_alone=10, backward_alone=9)


def test_the_published_form_keeps_every_product_and_adds_every_adjoint():
    """Of the 16 adjoints, 9 go to weights, 3 to hidden values, 3 through a ReLU and 1 through the square."""
    assert fusable_as_published(network()) == Fusable(10, 16, forward_alone=0, backward_alone=16)


@pytest.mark.parametrize("name", ["clang-O1-published", "tcc-published"])
def test_the_published_engine_counts_its_own_form(name):
    tape = network()
    assert engines.load(name).fusable(tape) == fusable_as_published(tape)
    assert engines.load("rerolled-clang").fusable(tape) == fusable(lower(tape)), (
        "recovered loops must count as the straight-line code that they replace"
    )
