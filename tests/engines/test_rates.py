"""Learning rates that are not finite numbers: every engine refuses them before it updates anything."""

from __future__ import annotations

import math
from array import array
from dataclasses import replace

import pytest

from tests.engines.compiled.compiling import ONE_OF_EACH_KIND, usable
from zoomgrad.engines.graph.value import Value
from zoomgrad.harness import workloads

NOT_FINITE = [math.inf, -math.inf, math.nan, 10**400]
NO_NUMBERS = ["0.1", None, 1j, [0.1]]
ONE_OF_EACH_TRAINER = ("tuple", "local-grads", "replay", *ONE_OF_EACH_KIND, "handwritten")


@pytest.fixture
def program(request):
    """A program with the loss x * p."""
    x, p = Value(1.0), Value(1.0)
    return usable(request.param).compile(x * p, inputs=[x], parameters=[p])


programs = pytest.mark.parametrize("program", ONE_OF_EACH_KIND, indirect=True)


@programs
def test_a_program_refuses_a_bad_rate_on_any_step(program):
    for rate in [*NOT_FINITE, *NO_NUMBERS]:
        kind, message = (ValueError, "a finite number, not") if rate in NOT_FINITE else (TypeError, "a number, not")
        with pytest.raises(kind, match=f"the rate must be {message}"):
            program.update(rate)
        with pytest.raises(kind, match=f"the rate must be {message}"):
            program.train(array("d", [1.0]), rate=rate)
        for at in range(3):  # no loss shows the last update

            def schedule(update, at=at, rate=rate):
                return rate if update == at else 0.1

            with pytest.raises(kind, match=f"the rate of update {at} must be {message}"):
                program.train(array("d", [1.0]), rate=schedule, steps=3)
    assert (list(program.parameters), list(program.gradients)) == ([1.0], [0.0])


@pytest.mark.parametrize("name", ONE_OF_EACH_TRAINER)
def test_every_trainer_refuses_a_bad_rate(name):
    """This includes the last step, after which no loss would show the update."""
    trainer = usable(name).prepare(replace(workloads.load("xor"), rate=lambda update: math.inf if update == 1 else 0.1))
    trainer.train(4)
    before = list(trainer.parameters())
    trainer.train(3)
    with pytest.raises(ValueError, match=r"the rate of update 1 must be a finite number, not inf"):
        trainer.train(1)
    assert list(trainer.parameters()) == before
