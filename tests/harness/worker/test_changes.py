"""Changed workloads: ordinary ones, on which every engine computes the same bits; what can't be changed says why."""

import math
from functools import cache

import pytest

from tests.engines.ladder import promised, runnable
from zoomgrad import engines
from zoomgrad.harness import workloads
from zoomgrad.harness.worker.train import task, train
from zoomgrad.harness.workloads.changes import CHANGES, InvalidChange, changed

CHANGED = {
    "xor": {"workload": "xor", "rate": 0.2, "batch": 2},
    "digits": {"workload": "digits", "batch": 3, "rate": 0.1},
    "moons": {"workload": "moons", "rate": 1e-3},
    "attention": {"workload": "attention", "rate": 0.01, "batch": 2},
}
KINDS = {"replay", "bytecode", "tcc", "rerolled-numpy", "handwritten"}
STEPS = {"moons": 3, "attention": 5}


@cache
def trained(engine, name):
    """(losses, parameters), or why the engine can't."""
    workload, engine = task(CHANGED[name]), engines.load(engine)
    refusal = engine.supports(workload)
    if refusal:
        return refusal
    trainer = engine.prepare(workload)
    trainer.train(STEPS.get(workload.name, 20))
    return trainer.losses, trainer.parameters()


@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.parametrize("engine", [engine for engine in runnable() if engine.values[0] in KINDS])
def test_every_engine_computes_the_reference_bits_on_a_changed_workload(engine, name):
    numbers = trained(engine, name)
    if isinstance(numbers, str):
        pytest.skip(f"{engine}: {numbers}")
    losses, parameters = trained("tuple", name)
    assert numbers == (promised(engine, losses), promised(engine, parameters))


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
