"""Networks and losses on every engine, compared with micrograd's reprs and plain arithmetic."""

import copy
import math
import random

import pytest

from tests.engines.ladder import of_each_value
from zoomgrad import engines
from zoomgrad.engines import nn


@pytest.fixture(params=of_each_value())
def engine(request):
    return engines.load(request.param)


def test_reprs_are_micrograds(engine):
    assert repr(engine.nn.MLP(2, [4, 1])) == (
        "MLP of [Layer of [ReLUNeuron(2), ReLUNeuron(2), ReLUNeuron(2), ReLUNeuron(2)], Layer of [LinearNeuron(4)]]"
    )
    assert repr(engine.nn.Layer(3, 1, activation="tanh")) == "Layer of [TanhNeuron(3)]"
    assert repr(engine.nn.MLP(1, [1], last_linear=False)) == "MLP of [Layer of [ReLUNeuron(1)]]"


def test_parameters_are_drawn_by_neuron_with_weights_first(engine):
    random.seed(1337)
    model = engine.nn.MLP(2, [3, 1])
    rng = random.Random(1337)
    expected = []
    for nin, nout in ((2, 3), (3, 1)):
        for _ in range(nout):
            expected += [rng.uniform(-1, 1) for _ in range(nin)] + [0]
    assert [p.data for p in model.parameters()] == expected
    assert [type(p) for p in model.parameters()] == [engine.Value] * len(expected)
    neuron, rng = engine.nn.Neuron(2, rng=random.Random(7), random_bias=True, activation="tanh"), random.Random(7)
    w1, w2, bias = (rng.uniform(-1, 1) for _ in range(3))
    assert neuron([0.5, -2.0]).data == math.tanh((bias + w1 * 0.5) + w2 * -2.0)
    with pytest.raises(ValueError, match="there is no activation 'gelu'\n  Choose one of relu, tanh, sigmoid, linear"):
        engine.nn.Neuron(2, activation="gelu")


def test_cross_entropy_is_softmax_and_log(engine):
    outputs = [0.3, -1.2, 2.5]
    loss = nn.cross_entropy([engine.Value(x) for x in outputs], [engine.Value(x) for x in (0.0, 0.0, 1.0)])
    softmax = math.exp(2.5) / sum(map(math.exp, outputs))
    assert loss.data == pytest.approx(-math.log(softmax + 0.0001), rel=1e-14)


def test_a_trained_model_can_be_copied(engine):
    """The copy trains without the model."""
    model = engine.nn.MLP(2, [3, 1], rng=random.Random(7))
    model.layers[0].neurons[0].b.label = "bias"
    model([1.0, 2.0]).backward()
    twin = copy.deepcopy(model)
    twin([1.0, 2.0]).backward()
    assert [p.data for p in twin.parameters()] == [p.data for p in model.parameters()]
    assert [p.grad for p in twin.parameters()] == [2 * p.grad for p in model.parameters()]
    assert twin.layers[0].neurons[0].b.label == "bias"
