"""Trainings of `zoomgrad train`, as the events that its worker yields."""

import math

import pytest

from tests.engines.ladder import willing
from zoomgrad import engines
from zoomgrad.engines.api import Unavailable
from zoomgrad.harness import workloads
from zoomgrad.harness.worker.train import task, train


def settings(**changes):
    return {"engine": "replay", "workload": "tour", **changes}


@pytest.mark.parametrize("engine", ["slots", "replay", "bytecode", "tcc"])
def test_it_stops_at_the_tolerance(engine):
    willing(engine, workloads.load("tour"))
    *_, end = train(settings(engine=engine))
    assert end["event"] == "end"
    assert end["converged"] is True
    assert end["figure"] == ("metric", math.sqrt(end["loss"]) / 5)
    assert end["figure"][1] <= 0.05
    assert end["accuracy"] == 1.0
    assert end["steps"] == end["epochs"] < 100


def test_a_metric_that_equals_the_tolerance_stops():
    def end(**changes):
        return list(train(settings(**changes)))[-1]

    _, metric = end(epochs=10)["figure"]
    assert end(epochs=20, tolerance=metric)["epochs"] == 10
    assert end(epochs=20, tolerance=math.nextafter(metric, 0.0))["epochs"] > 10


def test_a_seed_starts_from_other_parameters():
    ends = [list(train(settings(seed=seed)))[-1] for seed in (1337, 1338, 1337, None)]
    assert [end["seed"] for end in ends] == [1337, 1338, 1337, 1337]
    assert [end["loss"] == ends[0]["loss"] for end in ends] == [True, False, True, True]


def test_without_a_tolerance_all_epochs_are_taken():
    *_, end = train(settings(workload="xor", epochs=10))
    assert (end["seed"], end["converged"], end["steps"]) == (1337, None, 40)


def test_the_accuracy_of_a_tour_is_that_of_its_figure():
    """It stops before the update. Whether the last epoch was also evaluated for the live display must not matter."""
    workload = workloads.load("tour")
    trainer, accuracies = engines.load("replay").prepare(workload), [0.0]
    for epochs in range(1, 12):
        accuracies.append(workload.accuracy(trainer.predict))
        *_, end = train(settings(epochs=epochs, tolerance=1e-9))
        trainer.train(1)
        assert (end["accuracy"], end["loss"]) == (accuracies[-1], trainer.losses[-1])
    assert len({*accuracies[1:]}) > 1


def test_microgpt_invents_names():
    """It reports the held-out accuracy and names. Its rate falls over all epochs' steps."""
    asked = {"engine": "hoisted", "workload": "microgpt-L1-D2-H1-T4"}
    *_, end = train(asked)
    assert end["steps"] == 1000
    assert end["evaluated_on"] == "2,949 held out"
    assert len(end["samples"]) == 20
    rate = task({**asked, "epochs": 3}).rate
    assert (rate(0), rate(1500), rate(3000)) == (0.01, 0.005, 0.0)


def test_an_engine_that_cannot_run_the_workload_is_named():
    with pytest.raises(Unavailable, match=r"^handwritten can't run this: .*\n  Choose another engine"):
        next(train(settings(engine="handwritten", workload="conv-2d")))
