"""Changed workloads are ordinary ones; what can't be changed says why."""

import math

import pytest

from zoomgrad import engines
from zoomgrad.harness import workloads
from zoomgrad.harness.worker.train import train
from zoomgrad.harness.workloads.changes import CHANGES, InvalidChange, changed


def test_a_change_is_an_ordinary_value():
    before = workloads.load("digits")
    after = changed(before, {"rate": 0.25, "batch": 7, "epochs": 2, "tolerance": None})
    assert (after.rate(0), after.rate(1000), after.batch, after.epochs) == (0.25, 0.25, 7, 2)
    assert after.network == before.network
    assert workloads.load("digits") is before
    assert before.batch == 1
    assert changed(before, dict.fromkeys(CHANGES)) == before


@pytest.mark.parametrize(
    ("name", "change", "problem", "remedy"),
    [
        ("xor", {"rate": 0.0}, "a rate must be a finite number above 0, not 0.0", "Use a number such as 0.05."),
        ("xor", {"rate": math.nan}, "above 0, not nan", "0.05"),
        ("xor", {"tolerance": math.nan}, "must be a finite number, not nan", "0.05"),
        ("xor", {"batch": 0}, "batch must be a whole number from 1 to", "such as 10"),
        ("xor", {"epochs": 2, "batch": 9}, "a batch of 9 is never full: the training has 8 steps", "--epochs"),
    ],
)
def test_what_cannot_be_changed_says_why_on_one_line_and_what_to_do_on_another(name, change, problem, remedy):
    with pytest.raises(InvalidChange) as error:
        changed(workloads.load(name), change)
    _, second = str(error.value).split("\n  ")
    assert problem in str(error.value)
    assert remedy in second


def test_a_training_whose_last_update_overflows_is_a_failure():
    """Its accuracy cannot be computed any more."""
    asked = {"engine": "replay", "workload": "mlp-3x2x1", "batch": 1000, "epochs": 1, "rate": 1e155}
    with pytest.raises(engines.NonFiniteLoss, match=r"the loss of step 1000 is not a finite.*\n.*Lower the rate"):
        list(train(asked))
