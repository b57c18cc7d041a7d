"""The handwritten C compared with the reference on numbers that are hard for it. See also `test_within_buffers`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines.compiled.compiling import usable
from tests.engines.graphs import REFERENCE, bits, leaf_values
from tests.engines.ladder import over_rows
from tests.examples import examples
from zoomgrad import engines
from zoomgrad.engines.api import NonFiniteLoss
from zoomgrad.engines.graph.optimisers import ADAM
from zoomgrad.engines.kernel.trainer import CompiledTrainer
from zoomgrad.engines.nn import cross_entropy, hinge, squared_error
from zoomgrad.harness import workloads
from zoomgrad.harness.workloads.models import Mlp

pytestmark = pytest.mark.host

ENGINES = ["handwritten", "handwritten-sparse"]
LOSSES = {"cross_entropy": cross_entropy, "squared_error": squared_error}


@dataclass(frozen=True)
class Started(Mlp):
    """A network that starts from these parameters."""

    parameters: tuple[float, ...] = ()

    def __call__(self, nn, rng):
        model = super().__call__(nn, rng)
        for p, number in zip(model.parameters(), self.parameters):
            p.data = number
        return model


def task_of(shape, loss, rows, parameters=(), batch=1, speed=0.1):
    """Return a workload whose rows and starting parameters the test supplies."""
    workload = replace(
        workloads.load("mlp-2x2x1"),
        build=Started(shape, parameters=tuple(parameters)),
        loss_of=LOSSES[loss],
        batch=batch,
        rate=lambda update: speed / (1 + update),
    )
    return over_rows(workload, rows)


@cache
def program(name, shape, loss):
    """Return a program, compiled once for all tasks of that shape and loss."""
    nothing = [0.0] * (shape[0] + shape[-1])
    return usable(name).prepare(task_of(shape, loss, [nothing]))._program


def trainers(name, task):
    """Return the reference's trainer and the engine's, with the same starting parameters."""
    reference = engines.load(REFERENCE).prepare(task)
    made = program(name, task.network.shape, task.network.loss)
    made.zero_grad()
    made.parameters[:] = reference.parameters()
    return reference, CompiledTrainer(made, task)


def outcome(trainer, stretches):
    """Train, and return the bits of all results and the step that failed, if one did."""
    failed = None
    try:
        for steps in stretches:
            trainer.train(steps)
    except NonFiniteLoss as error:
        failed = error.step
    return {
        "losses": bits(trainer.losses),
        "parameters": bits(trainer.parameters()),
        # At a failing step the reference has already run the backward pass.
        "gradients": bits(trainer.gradients()) if failed is None else None,
        "failed": failed,
    }


def agree(name, task, stretches):
    """Assert equal outcomes of engine and reference; return the step that failed, if any, and the parameters."""
    reference, trainer = trainers(name, task)
    expected = outcome(reference, stretches)
    assert outcome(trainer, stretches) == expected
    return expected["failed"], list(reference.parameters())


# --- infinities and NaN ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", ENGINES)
def test_a_weight_that_becomes_infinite_meets_an_input_of_zero(name, batch):
    """With a weight of minus infinity the neuron is dead and the loss finite, as long as the input is not 0."""
    rows = [[1e300, 0.0, 0.0]] * 3 + [[0.0, 1.0, 0.0]]
    task = task_of((2, 2, 1), "squared_error", rows, [1e-300, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0], batch, 1e10)
    failed, parameters = agree(name, task, (6,))  # in one call, because only the beginning of a call measures weights
    assert (failed, parameters[0]) == (3, -math.inf)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", ENGINES)
def test_an_infinite_gradient_meets_an_input_of_zero(name, batch):
    """The neuron is dead, and 0 times its infinite gradient is NaN, so the updates of all its weights are NaN."""
    task = task_of(
        (2, 2, 1), "squared_error", [[0.0, 1.0, 20.0]], [1.0, -1.0, 0.0, 1.0, 1.0, 0.0, 1e308, 1.0, 0.0], batch
    )
    failed, parameters = agree(name, task, (batch, 1))
    assert failed == batch
    assert [x != x for x in parameters[:6]] == [True, True, True, False, False, False]


# --- zeros -----------------------------------------------------------------------------------------------------------


sizes = st.sampled_from([0.0, -0.0, 1.0]) | st.floats(-3.0, 3.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ENGINES)
def test_random_networks(name, loss):
    usable(name)
    shape = (5, 3, 2)
    weights = 6 * 3 + 4 * 2

    def numbers(values, count):
        return st.lists(values, min_size=count, max_size=count)

    wild = sizes | leaf_values

    @settings(max_examples=examples(60), deadline=None)
    @given(
        rows=st.lists(numbers(sizes, 7), min_size=1, max_size=3) | st.lists(numbers(wild, 7), min_size=1, max_size=3),
        parameters=numbers(sizes, weights) | numbers(wild, weights),
        batch=st.integers(1, 3),
        speed=st.sampled_from([0.01, 0.1, 1e200, 1e308, -1.0]),
        stretches=st.lists(st.integers(0, 4), min_size=1, max_size=3),
    )
    def check(rows, parameters, batch, speed, stretches):
        agree(name, task_of(shape, loss, rows, parameters, batch, speed), stretches)

    check()


# --- refusals --------------------------------------------------------------------------------------------------------


SMALL = workloads.load("mlp-2x3x1")
REFUSED = {
    "for MLPs, and this model is not": workloads.load("recurrent"),
    "for two layers of weights, and this model has 3": replace(SMALL, build=Mlp((2, 3, 4, 1))),
    "for ReLU and a linear last layer, and this model has tanh": replace(SMALL, build=Mlp((2, 3, 1), "tanh")),
    "for cross_entropy and squared_error, and this loss is hinge": replace(SMALL, loss_of=hinge, penalty=1e-4),
    "for one sample per step, and a step of this workload has 1,000": replace(SMALL, whole_set=True),
    "adam": replace(SMALL, optimiser=ADAM),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_unsupported_workloads_are_refused(reason):
    engine = engines.load("handwritten")
    assert reason in engine.supports(REFUSED[reason])
    with pytest.raises(ValueError, match=f"{reason}.*\n  Call `supports`"):
        engine.prepare(REFUSED[reason])
