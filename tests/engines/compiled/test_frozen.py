"""Workloads that run forward passes only, and engines with the option `frozen`, which run nothing else."""

from __future__ import annotations

import functools
import math
from array import array
from dataclasses import replace

import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.graphs import bits
from tests.engines.ladder import FAST_TO_COMPILE, over_rows, promised, runnable, willing
from zoomgrad import engines
from zoomgrad.engines.api import NonFiniteLoss, Unavailable
from zoomgrad.engines.graph.value import Value
from zoomgrad.harness import workloads

FROZEN = (
    *("tcc+frozen", "gcc-O1+frozen", "clang-O1+frozen"),
    *("rerolled-tcc+frozen", "rerolled-gcc+frozen", "rerolled-clang+frozen"),
    "clang-O1-whole+native+frozen",
    *("rerolled-gcc+generic+frozen", "rerolled-clang+fma+frozen", "rerolled-clang-fast+frozen"),
)
SMALL = replace(workloads.load("mlp-16x9x4"), learns=False)
"""Large enough for loops in vectors."""


def evaluated(name, task=SMALL):
    """Return the losses over several calls that wrap around, then the outputs for a row. Nothing else may change."""
    trainer = willing(name, task).prepare(task)
    start = trainer.parameters()
    trainer.restart(batch=3, rows=5)
    for steps in (2, 0, 9):
        trainer.train(steps)
    assert trainer.parameters() == start
    assert not any(trainer.gradients())
    return array("d", [*trainer.losses, *trainer.predict(task.row(7))])


@functools.cache
def expected():
    """Losses and outputs of the same rows, by the reference's own Values."""
    nn = engines.load("tuple").nn
    model = SMALL.model(nn)
    values = [nn.Neuron.Value(x) for step in range(11) for x in SMALL.row(step % 5)]
    width = len(SMALL.row(0))
    rows = [values[start : start + width] for start in range(0, len(values), width)]
    losses = [SMALL.loss(model, row, SMALL.outputs(model, row)).data for row in rows]
    outputs = SMALL.outputs(model, [nn.Neuron.Value(x) for x in SMALL.row(7)])
    return array("d", [*losses, *(v.data for v in outputs)])


@pytest.mark.parametrize(
    "engine",
    [
        *runnable(most_compile_row_seconds=FAST_TO_COMPILE),
        *(pytest.param(name, marks=pytest.mark.host) for name in FROZEN),
    ],
)
def test_a_workload_that_does_not_learn_runs_forward_passes_only(engine):
    usable(engine)
    assert promised(engine, expected()) == evaluated(engine)


@pytest.mark.parametrize(
    "engine", ["slots", "replay", "bytecode", "tcc", "tcc+frozen", "rerolled-tcc+frozen", "rerolled-numpy"]
)
def test_the_first_loss_that_is_not_finite_ends_the_stretch(engine):
    """The targets of row 2 are so large that their squares overflow."""
    usable(engine)
    rows = [SMALL.row(step) for step in range(4)]
    rows[2][-1] = 1e200

    trainer = engines.load(engine).prepare(over_rows(SMALL, rows))
    with pytest.raises(NonFiniteLoss) as raised:
        trainer.train(4)
    assert (raised.value.step, len(trainer.losses)) == (2, 2)
    assert not any(trainer.gradients())
    if hasattr(trainer, "_program"):
        assert array("d", trainer._program.outputs) == trainer.predict(SMALL.row(2))


@pytest.mark.parametrize("engine", ["tcc+frozen", "rerolled-tcc+frozen"])
def test_a_frozen_engine_refuses_to_train(engine):
    frozen = usable(engine)
    assert frozen.supports(workloads.load("digits-forward")) is None
    assert frozen.supports(workloads.load("digits")) == "its weights are constants, so it can't train"
    assert "one length" in frozen.supports(replace(workloads.load("microgpt"), learns=False))
    w, x = Value(2.0), Value(3.0)
    with pytest.raises(Unavailable, match=r"runs workloads only\n  .* leave out \+frozen"):
        frozen.compile(w * x, inputs=[x], parameters=[w])


@pytest.mark.host
@pytest.mark.parametrize("weight", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("name", ["tcc+frozen", "rerolled-gcc+frozen", "clang-O1+frozen", "rerolled-tcc+frozen"])
def test_weights_need_not_be_finite(name, weight):
    def build(nn, random):
        network = SMALL.build(nn, random)
        network.parameters()[0].data = weight
        return network

    task, nn = replace(SMALL, build=build), engines.load("tuple").nn
    outputs = task.outputs(task.model(nn), [nn.Neuron.Value(x) for x in task.row(0)])
    assert bits(v.data for v in outputs) == bits(usable(name).prepare(task).predict(task.row(0)))


@pytest.mark.host
@pytest.mark.parametrize("name", ["tcc+frozen", "rerolled-tcc+frozen"])
def test_the_weights_are_those_of_the_c(name):
    """A change of the caller's buffer changes no loss, because the loop over rows never reads it."""
    trainer = usable(name).prepare(SMALL)
    for index in range(len(trainer.parameters())):
        trainer._program.parameters[index] = 1e9
    trainer.train(3)
    assert promised(name, expected()[:3]) == trainer.losses
