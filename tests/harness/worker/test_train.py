"""Trainings of `zoomgrad train`, in its worker."""

import math
from dataclasses import replace

import pytest

from tests.engines.ladder import willing
from zoomgrad import engines
from zoomgrad.harness import workloads
from zoomgrad.harness.worker.train import task, train

TOUR = workloads.load("tour")


@pytest.mark.parametrize("engine", ["slots", "replay", "bytecode", "tcc"])
def test_it_stops_at_the_tolerance(engine):
    willing(engine, TOUR)
    end = train(engine, TOUR)
    assert end.within_tolerance
    assert math.sqrt(end.loss) / 5 <= 0.05
    assert end.accuracy == 1.0
    assert end.steps < 100


def test_a_metric_that_equals_the_tolerance_stops():
    metric = math.sqrt(train("replay", replace(TOUR, epochs=10)).loss) / 5
    assert train("replay", replace(TOUR, tolerance=metric)).steps == 10
    assert train("replay", replace(TOUR, tolerance=math.nextafter(metric, 0.0))).steps > 10


def test_a_seed_starts_from_other_parameters():
    first, other, again = (train("replay", task("tour", 10, seed)).loss for seed in (None, 1338, 1337))
    assert first == again != other


def test_without_a_tolerance_all_epochs_are_taken(capsys):
    end = train("replay", task("xor", 10, None))
    assert (end.steps, end.within_tolerance) == (40, False)
    assert capsys.readouterr().out.startswith("seed 1337: 40 steps, loss ")


def test_the_accuracy_of_a_tour_is_that_of_its_loss():
    """It stops before the update."""
    trainer, accuracies = engines.load("replay").prepare(TOUR), [0.0]
    for epochs in range(1, 12):
        accuracies.append(TOUR.accuracy(trainer.predict))
        end = train("replay", replace(TOUR, epochs=epochs, tolerance=1e-9))
        trainer.train(1)
        assert (end.accuracy, end.loss) == (accuracies[-1], trainer.losses[-1])
    assert len({*accuracies[1:]}) > 1


def test_microgpt_invents_names(capsys):
    """It reports the held-out accuracy and names. Its rate falls over all epochs' steps."""
    name = "microgpt-L1-D2-H1-T4"
    assert len(train("hoisted", task(name, None, None)).samples) == 20
    assert "on 2,949 held out" in capsys.readouterr().out
    rate = task(name, 3, None).rate
    assert (rate(0), rate(1500), rate(3000)) == (0.01, 0.005, 0.0)


def test_a_training_whose_last_update_overflows_is_a_failure():
    """Its accuracy cannot be computed any more."""
    workload = replace(workloads.load("mlp-3x2x1"), batch=1000, rate=lambda update: 1e155)
    with pytest.raises(engines.NonFiniteLoss, match=r"the loss of step 1000 is not a finite.*\n.*Lower the rate"):
        train("replay", workload)
