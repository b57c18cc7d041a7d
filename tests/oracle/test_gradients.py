"""The gradients of `tuple` on every workload equal central differences of 50-digit losses."""

from __future__ import annotations

import contextlib
import random

import mpmath
import pytest

import engines
from engines import nn
from harness import workloads
from tests.engines.ladder import available
from tests.oracle.exact import DIGITS, Exact, Kink, loss_at, slope

pytestmark = pytest.mark.exhaustive

REFERENCE = "tuple"
NETWORKS = nn.bind(Exact)
STEPS = 5
"""Training steps before the comparison: biases start at 0, which puts the row of zeros in `xor` on a kink."""
FEW = 400
"""Up to this many parameters, check each gradient individually."""
SAMPLED = 24
"""For a larger model, check this many individually, and all together along random directions."""
DIRECTIONS = 3
TOLERANCE = 1e-11
"""Of a gradient: relative to the sum of the magnitudes along the direction plus the largest gradient."""


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(DIGITS):
        yield


def trained_parameters(workload):
    trainer = engines.load(REFERENCE).prepare(workload)
    trainer.restart(batch=1)
    trainer.train(STEPS)
    return list(trainer.parameters())


def of_reference(workload, parameters, row):
    """Return the reference's loss and gradients over one row."""
    networks = engines.load(REFERENCE).nn
    model = workload.model(networks)
    for p, start in zip(model.parameters(), parameters, strict=True):
        p.data = start
    inputs = [networks.Neuron.Value(x) for x in row]
    loss = workload.loss(model, inputs, workload.outputs(model, inputs))
    loss.backward()
    return loss.data, [p.grad for p in model.parameters()]


def slopes(workload, parameters, chosen):
    """Return the first row without a kink, and the derivatives there."""
    for step in range(workload.steps_per_epoch):
        row = workload.row(step)
        with contextlib.suppress(Kink):
            return row, [slope(workload, NETWORKS, parameters, row, direction) for direction in chosen]
    return pytest.fail(f"every row of {workload.name} sits on a kink")


def directions(count):
    """Return a direction for each parameter (a sample if there are many), then random signs for all parameters."""
    rng = random.Random(1337)
    single = range(count) if count <= FEW else sorted(rng.sample(range(count), SAMPLED))
    together = [{i: rng.choice((-1, 1)) for i in range(count)} for _ in range(DIRECTIONS)]
    return [*({i: 1} for i in single), *together]


@pytest.mark.parametrize("name", [*(n for n in workloads.names() if workloads.load(n).learns), "mlp-5x4x3"])
def test_gradients_of_the_reference_are_derivatives(name):
    workload = available(name)
    parameters = trained_parameters(workload)
    chosen = directions(len(parameters))
    row, expected = slopes(workload, parameters, chosen)
    loss, gradients = of_reference(workload, parameters, row)
    exact = loss_at(workload, NETWORKS, parameters, row)
    assert abs(loss - exact) <= TOLERANCE * max(1, abs(exact))
    largest = max(map(abs, gradients))
    assert largest > 0
    for direction, derivative in zip(chosen, expected, strict=True):
        found = mpmath.fsum(mpmath.mpf(gradients[i]) * far for i, far in direction.items())
        magnitude = mpmath.fsum(abs(mpmath.mpf(gradients[i])) for i in direction) + largest
        which = f"parameter {min(direction)}" if len(direction) == 1 else "all parameters, along random signs"
        assert abs(found - derivative) <= TOLERANCE * magnitude, which
