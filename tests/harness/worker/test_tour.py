"""`zoomgrad train tour`: where it stops, and the update that it does not make."""

import math

import pytest

from zoomgrad import engines
from zoomgrad.harness.worker.train import task, train


def end_of(**settings):
    (end,) = [e for e in train({"engine": "tuple", "workload": "tour", **settings}) if e["event"] == "end"]
    return end


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
