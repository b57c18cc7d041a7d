"""`zoomgrad train tour` beside a program of ours for this training, with floats alone: the same epochs and losses."""

import math
import random

import pytest

from zoomgrad import engines
from zoomgrad.datasets import tour
from zoomgrad.harness.worker.train import task, train

STEP = 0.05


def tour_by_hand(rows, seed, *, epochs=100, tolerance=0.05):
    """(epochs, losses): no Values, no graph; the partial derivatives are written out for this net.

    Gradients add up in the order of a backward walk: the last row first, and in a row the last neuron first.
    """
    rng = random.Random(seed)
    # A neuron is its weights, then its bias.
    layers = [
        [[rng.uniform(-1, 1) for _ in range(inputs + 1)] for _ in range(outputs)]
        for inputs, outputs in ((3, 4), (4, 4), (4, 1))
    ]
    losses = []
    while True:
        states = []
        for features, _ in rows:
            states.append([list(features)])
            for layer in layers:
                states[-1].append([activated(neuron, states[-1][-1]) for neuron in layer])
        errors = [state[-1][0] - target for state, (_, target) in zip(states, rows)]
        loss = 0.0
        for error in errors:  # `sum` of floats is more exact than the graph's additions
            loss += math.pow(error, 2)  # PyPy rewrites `error**2`
        losses.append(loss)
        if math.sqrt(loss) / len(rows) <= tolerance or len(losses) == epochs:
            return len(losses), losses
        slopes = [[[0.0] * len(neuron) for neuron in layer] for layer in layers]
        for state, error in zip(reversed(states), reversed(errors)):
            from_above = [2 * error]
            for depth in (2, 1, 0):
                from_above = passed_back(layers[depth], slopes[depth], state[depth], state[depth + 1], from_above)
        for layer, of_layer in zip(layers, slopes):
            for neuron, of_neuron in zip(layer, of_layer):
                for index, slope in enumerate(of_neuron):
                    neuron[index] -= STEP * slope


def activated(neuron, inputs):
    *weights, total = neuron
    for weight, x in zip(weights, inputs):
        total += weight * x
    return math.tanh(total)


def passed_back(layer, slopes, inputs, outputs, from_above):
    """Add to a layer's slopes. Returns the gradients of its inputs."""
    below = [0.0] * len(inputs)
    for neuron, of_neuron, out, gradient in reversed(list(zip(layer, slopes, outputs, from_above))):
        gradient = (1 - out * out) * gradient
        of_neuron[-1] += gradient
        for index, x in enumerate(inputs):
            of_neuron[index] += x * gradient
            below[index] += neuron[index] * gradient
    return below


def end_of(**settings):
    (end,) = [e for e in train({"engine": "tuple", "workload": "tour", **settings}) if e["event"] == "end"]
    return end


def rows_of(dataset):
    return [(row[:3], row[3]) for row in map(dataset.inputs, range(dataset.rows))]


SEEDS = range(1337, 1342)


def test_epochs_and_losses_are_those_of_a_program_written_by_hand():
    for seed in SEEDS:
        end = end_of(seed=seed)
        epochs, losses = tour_by_hand(rows_of(tour.load()), seed)
        assert (end["epochs"], end["loss"]) == (epochs, losses[-1])
        assert end["converged"] == (math.sqrt(losses[-1]) / 5 <= 0.05)
        assert end["figure"] == ("metric", math.sqrt(losses[-1]) / 5)


def test_a_metric_that_equals_the_tolerance_stops():
    _, metric = end_of(epochs=10)["figure"]
    assert end_of(epochs=20, tolerance=metric)["epochs"] == 10
    assert end_of(epochs=20, tolerance=math.nextafter(metric, 0.0))["epochs"] > 10


@pytest.fixture
def prepared(monkeypatch):
    """Every trainer that is prepared."""
    kind, made = type(engines.load("tuple")), []
    monkeypatch.setattr(kind, "prepare", recording(kind.prepare, made))
    return made


@pytest.mark.parametrize("epochs", [1, 7])
def test_the_last_update_is_undone_before_the_accuracy(epochs, prepared):
    end = end_of(epochs=epochs)
    by_training, workload = engines.load("tuple").prepare(task({"workload": "tour"})), task({"workload": "tour"})
    by_training.train(epochs - 1)
    assert prepared[0].parameters() == by_training.parameters()
    assert end["accuracy"] == workload.accuracy(by_training.predict)


def recording(prepare, prepared):
    def prepare_and_keep(*arguments, **options):
        prepared.append(prepare(*arguments, **options))
        return prepared[-1]

    return prepare_and_keep
