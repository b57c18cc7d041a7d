"""`zoomgrad train tour` beside a program of ours for this training, with floats alone: the same epochs and losses."""

import math
import random

import pytest

import engines
from datasets import tour
from engines.interpreted.trainer import ScalarTrainer
from harness.worker.train import task, train
from harness.workloads.changes import DATA_SEEDS

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


def ends(**settings):
    return [event for event in train({"engine": "tuple", "workload": "tour", **settings}) if event["event"] == "end"]


def rows_of(dataset):
    return [(row[:3], row[3]) for row in map(dataset.inputs, range(dataset.rows))]


@pytest.mark.parametrize("fresh_data", [False, True])
def test_epochs_and_losses_are_those_of_a_program_written_by_hand(fresh_data):
    reached = set()
    for end in ends(repeats=5, fresh_data=fresh_data):
        seed = end["seed"]
        rows = rows_of(tour.load(seed=seed + DATA_SEEDS) if fresh_data else tour.load())
        epochs, losses = tour_by_hand(rows, seed)
        assert (end["epochs"], end["loss"]) == (epochs, losses[-1])
        assert [loss for _, loss in end["curve"]] == losses
        assert end["converged"] == (math.sqrt(losses[-1]) / 5 <= 0.05)
        assert end["figure"] == ("metric", math.sqrt(losses[-1]) / 5)
        reached.add(end["converged"])
    assert reached == ({True, False} if fresh_data else {True}), "both ends of a training are compared"


@pytest.mark.parametrize("tolerance", [0.5, 0.2, 0.1])
def test_any_tolerance_is_the_metrics(tolerance):
    for end in ends(repeats=4, tolerance=tolerance):
        epochs, losses = tour_by_hand(rows_of(tour.load()), end["seed"], tolerance=tolerance)
        assert (end["epochs"], end["loss"]) == (epochs, losses[-1])


def test_a_metric_that_equals_the_tolerance_stops():
    (end,) = ends(epochs=10)
    _, metric = end["figure"]
    assert ends(epochs=20, tolerance=metric)[0]["epochs"] == 10
    assert ends(epochs=20, tolerance=math.nextafter(metric, 0.0))[0]["epochs"] > 10


@pytest.fixture
def prepared(monkeypatch):
    """Every trainer that is prepared."""
    kind, made = type(engines.load("tuple")), []
    monkeypatch.setattr(kind, "prepare", recording(kind.prepare, made))
    return made


@pytest.mark.parametrize("changes", [{"epochs": 1}, {"epochs": 30}, {"tolerance": 0.1}, {"epochs": 30, "batch": 3}])
def test_an_accuracy_is_that_of_the_parameters_that_gave_the_loss(changes, monkeypatch):
    monkeypatch.setattr("harness.worker.train.FREE_SECONDS", math.inf)
    monkeypatch.setattr(ScalarTrainer, "restart", None)  # what is known is not computed again
    (end,) = ends(rate=0.02, **changes)
    workload = task({"workload": "tour", "rate": 0.02, **changes})
    trainer, accuracies = engines.load("tuple").prepare(workload), []
    for epoch in range(1, end["epochs"] + 1):
        accuracies.append((epoch, workload.accuracy(trainer.predict)))
        trainer.train(1)
    assert end["accuracies"] == accuracies
    assert len({accuracy for _, accuracy in accuracies}) > 1 or end["epochs"] == 1
    assert end["accuracy"] == accuracies[-1][1]


@pytest.mark.parametrize("epochs", [1, 7])
def test_without_time_for_a_curve_the_last_update_is_undone(epochs, prepared, monkeypatch):
    monkeypatch.setattr("harness.worker.train.FREE_SECONDS", -math.inf)
    (end,) = ends(epochs=epochs)
    by_training = engines.load("tuple").prepare(task({"workload": "tour"}))
    by_training.train(epochs - 1)
    assert prepared[0].parameters() == by_training.parameters()
    assert end["accuracies"] == [(epochs, end["accuracy"])]


def recording(prepare, prepared):
    def prepare_and_keep(*arguments, **options):
        prepared.append(prepare(*arguments, **options))
        return prepared[-1]

    return prepare_and_keep
