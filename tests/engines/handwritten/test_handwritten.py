"""The handwritten C compared with the reference: it may be faster than the interpreter, never different from it."""

from __future__ import annotations

import itertools
import math
import random
from array import array
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines.compiled.compiling import usable
from tests.engines.graphs import REFERENCE, bits, leaf_values
from tests.examples import examples
from zoomgrad import engines
from zoomgrad.engines.api import Network, NonFiniteLoss
from zoomgrad.engines.columns import Column
from zoomgrad.engines.graph.optimisers import ADAM, SGD
from zoomgrad.engines.kernel.trainer import CompiledTrainer
from zoomgrad.engines.nn import as_list, cross_entropy, squared_error
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host

ENGINES = ["handwritten", "handwritten-sparse"]
LOSSES = {"cross_entropy": cross_entropy, "squared_error": squared_error}


@dataclass(frozen=True)
class Task:
    """A workload whose rows and starting parameters the test supplies."""

    shape: tuple[int, ...]
    loss_name: str
    rows: list[list[float]]
    parameters: Optional[list[float]] = None
    batch: int = 1
    speed: float = 0.1
    name = "task"
    learns = True
    optimiser = SGD
    varies = False

    @property
    def network(self):
        return Network(self.shape, "relu", True, self.loss_name, 1)

    def rate(self, update):
        return self.speed / (1 + update)

    def row(self, step):
        return array("d", self.rows[step % len(self.rows)])

    def columns(self):
        return (Column(array("d", itertools.chain(*self.rows)), len(self.rows[0])),)

    def model(self, nn):
        model = nn.MLP(self.shape[0], list(self.shape[1:]), rng=random.Random(7))
        for p, number in zip(model.parameters(), self.parameters or []):
            p.data = number
        return model

    def outputs(self, model, inputs):
        return as_list(model(inputs[: self.shape[0]]))

    def loss(self, model, inputs, outputs):
        return LOSSES[self.loss_name](outputs, inputs[self.shape[0] :])


@cache
def program(name, shape, loss):
    """Return a program, compiled once for all tasks of that shape and loss."""
    nothing = [0.0] * (shape[0] + shape[-1])
    return usable(name).prepare(Task(shape, loss, [nothing]))._program


def trainers(name, task):
    """Return the reference's trainer and the engine's, with the same starting parameters."""
    reference = engines.load(REFERENCE).prepare(task)
    made = program(name, task.shape, task.loss_name)
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


# --- the workloads ---------------------------------------------------------------------------------------------------


@cache
def of_reference(workload, stretches, batch):
    """Return the reference's outcome and its prediction afterwards. They take seconds, so all engines share them."""
    task = workloads.load(workload)
    trainer = engines.load(REFERENCE).prepare(task)
    trainer.restart(batch=batch)
    return outcome(trainer, stretches), bits(trainer.predict(task.row(3)))


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    ("workload", "stretches"),
    [("xor", (7, 33)), ("mlp-70x60x1", (9, 7)), ("mlp-3x7x65", (20,))],
)
@pytest.mark.parametrize("name", ENGINES)
def test_it_trains_as_the_reference_does(name, workload, stretches, batch):
    """Batches continue across stretches. Layer widths are below, at and above a block of neurons."""
    task, trainer = workloads.load(workload), usable(name).prepare(workloads.load(workload))
    expected, prediction = of_reference(workload, stretches, batch)
    for _ in range(2):  # the second time after a restart
        trainer.restart(batch=batch)
        assert outcome(trainer, stretches) == expected
        assert bits(trainer.predict(task.row(3))) == prediction


# --- infinities and NaN ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", ENGINES)
def test_a_weight_that_becomes_infinite_meets_an_input_of_zero(name, batch):
    """With a weight of minus infinity the neuron is dead and the loss finite, as long as the input is not 0."""
    rows = [[1e300, 0.0, 0.0]] * 3 + [[0.0, 1.0, 0.0]]
    task = Task((2, 2, 1), "squared_error", rows, [1e-300, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0], batch, 1e10)
    failed, parameters = agree(name, task, (6,))  # in one call, because only the beginning of a call measures weights
    assert (failed, parameters[0]) == (3, -math.inf)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", ENGINES)
def test_an_infinite_gradient_meets_an_input_of_zero(name, batch):
    """The neuron is dead, and 0 times its infinite gradient is NaN, so the updates of all its weights are NaN."""
    task = Task((2, 2, 1), "squared_error", [[0.0, 1.0, 20.0]], [1.0, -1.0, 0.0, 1.0, 1.0, 0.0, 1e308, 1.0, 0.0], batch)
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
        agree(name, Task(shape, loss, rows, parameters, batch, speed), stretches)

    check()


# --- refusals --------------------------------------------------------------------------------------------------------


PLAIN = Network((2, 3, 1), "relu", True, "squared_error", 1)


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (None, "it is written for MLPs, and this model is not an MLP"),
        (PLAIN._replace(shape=(2, 3, 4, 1)), "it is written for two layers of weights, and this model has 3"),
        (PLAIN._replace(activation="tanh"), "it is written for ReLU and a linear last layer, and this model has tanh"),
        (PLAIN._replace(loss="hinge"), "it is written for cross_entropy and squared_error, and this loss is hinge"),
        (PLAIN._replace(samples=100), "it is written for one sample per step, and a step of this workload has 100"),
    ],
)
def test_unsupported_networks_are_refused(network, reason):
    engine, unlike = engines.load("handwritten"), SimpleNamespace(name="unlike", network=network, optimiser=SGD)
    assert engine.supports(unlike) == reason
    with pytest.raises(ValueError, match=f"handwritten can't run unlike: {reason}\n  Call `supports`"):
        engine.prepare(unlike)


def test_another_optimiser_is_refused():
    assert "adam" in engines.load("handwritten").supports(replace(workloads.load("digits"), optimiser=ADAM))
