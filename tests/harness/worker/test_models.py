"""Models other than the MLP: their outputs, recomputed in plain numbers from their parameters in order."""

import math
import random

import pytest

from zoomgrad import engines
from zoomgrad.engines.nn import as_list
from zoomgrad.harness.workloads import random_dag
from zoomgrad.harness.workloads.models import Attention, Recurrent
from zoomgrad.harness.workloads.random_dag import RandomDag

NN = engines.load("tuple").nn


def numbers(count, seed):
    rng = random.Random(seed)
    return [rng.uniform(-1, 1) for _ in range(count)]


def outputs(model, x):
    """Return the model's outputs with random parameters; biases that start at zero would hide a mistake."""
    for p, number in zip(model.parameters(), numbers(len(model.parameters()), 2)):
        p.data = number
    return [o.data for o in as_list(model([NN.Neuron.Value(number) for number in x]))]


def taker(count):
    """Return a function that takes the next parameters: the weights of a neuron, then its bias."""
    rest = numbers(count, 2)

    def take(number):
        taken, rest[:] = rest[:number], rest[number:]
        return taken

    return take


def weighted(weights, x):
    *weights, bias = weights
    assert len(weights) == len(x)
    return bias + sum(w * number for w, number in zip(weights, x))


def test_recurrent_carries_its_state_from_step_to_step():
    model = Recurrent(NN, random.Random(1), inputs=2, units=3)
    x = numbers(8, 3)
    take = taker(len(model.parameters()))
    units, read_out = [take(6) for _ in range(3)], take(4)
    state = [0.0] * 3
    for step in range(4):
        state = [math.tanh(weighted(unit, x[2 * step : 2 * step + 2] + state)) for unit in units]
    assert outputs(model, x) == pytest.approx([weighted(read_out, state)])


def test_attention_weights_values_by_keys_and_queries():
    model = Attention(NN, random.Random(1), tokens=3, width=4)
    x = numbers(12, 3)
    tokens = [x[0:4], x[4:8], x[8:12]]
    take = taker(len(model.parameters()))
    query, key, value = ([take(5) for _ in range(4)] for _ in range(3))
    read_out = take(13)
    queries, keys, values = (
        [[weighted(weights, token) for weights in part] for token in tokens] for part in (query, key, value)
    )
    heard = []
    for asked in queries:
        answers = [math.exp(sum(q * k for q, k in zip(asked, answer)) / 2.0) for answer in keys]
        for feature in range(4):
            heard.append(sum(a * v[feature] for a, v in zip(answers, values)) / sum(answers))
    assert outputs(model, x) == pytest.approx([weighted(read_out, heard)])


def test_a_random_dag_reads_everything_and_has_every_operation():
    model = RandomDag(NN, random.Random(1), inputs=4, weights=28, operations=2000)
    inputs = [NN.Neuron.Value(number) for number in numbers(4, 3)]
    nodes = model(inputs).topo()
    assert {*inputs, *model.parameters()} <= set(nodes)
    assert {name for name, _, _ in model.drawn} == set(random_dag._OPERATIONS)
    assert len(nodes) >= 2000
    assert all(math.isfinite(v.data) for v in nodes)
