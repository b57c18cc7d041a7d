"""Rows taken together, in tiles of sums: the same bits for random networks, numbers of rows, vectors and batches."""

from __future__ import annotations

import random
from array import array

import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.graphs import bits
from tests.engines.rerolled.rolling import form, of_form
from zoomgrad.engines.api import NonFiniteLoss
from zoomgrad.engines.rerolled.rearrange import weight_reuse, whole_batches

pytestmark = pytest.mark.host


def program_of(engine, inputs, hidden, seed):
    """Compile a network with one hidden layer, whose weights depend on the seed."""
    chance = random.Random(seed)
    x = [engine.Value(0.0) for _ in range(inputs)]
    w = [[engine.Value(chance.uniform(-1, 1)) for _ in range(inputs)] for _ in range(hidden)]
    b = [engine.Value(chance.uniform(-1, 1)) for _ in range(hidden)]
    v = [engine.Value(chance.uniform(-1, 1)) for _ in range(hidden)]
    neurons = [sum((wi * xi for wi, xi in zip(row, x)), bias).relu() for row, bias in zip(w, b)]
    score = sum((vi * n for vi, n in zip(v, neurons)), engine.Value(0.1))
    return engine.compile(
        score * score, inputs=x, parameters=[*(p for row in w for p in row), *b, *v], outputs=[score, neurons[0]]
    )


def trained(program, rows, batch, start):
    """What a caller sees after two stretches, of which the second may begin within a batch."""
    program.parameters[:] = start
    program.zero_grad()
    seen = []
    for steps, first in ((2 * batch + 3, 1), (batch + 1, 4)):
        try:
            seen.append(bits(program.train(rows, rate=0.05, batch=batch, steps=steps, first_row=first)))
        except NonFiniteLoss as error:
            seen.append(error.step)
        seen += [bits(numbers) for numbers in (program.parameters, program.gradients, program.inputs, program.outputs)]
    return seen


@pytest.mark.parametrize("seed", range(4))
def test_random_networks_keep_their_bits(monkeypatch, seed):
    for module in (weight_reuse, whole_batches):
        monkeypatch.setattr(module, "MANY", 1)
    chance = random.Random(seed)
    inputs, hidden = chance.randint(2, 13), chance.choice([2, 3, 5, 8, 9, 17, 37])
    taken = chance.choice([2, 3, 7, 16])
    sizes = {"width": chance.choice([1, 2, 4, 8]), "registers": chance.choice([16, 32]), "sparse": seed % 2 == 1}
    sizes["cache"] = chance.choice([8, 1 << 18])
    cells = array("d", [chance.choice([0.0, -0.0, chance.uniform(-1, 1)]) for _ in range(inputs * 11)])
    broken = array("d", cells)
    broken[inputs * 6] = float("nan")
    huge = array("d", cells)
    huge[inputs * 7 : inputs * 8] = array("d", [1e200] * inputs)
    programs = [
        program_of(usable(engine), inputs, hidden, seed) for engine in ("tcc", of_form("gcc", form(taken, **sizes)))
    ]
    start = array("d", programs[0].parameters)
    for batch in (1, 2, 3, taken, taken + 1, 2 * taken + 5):
        for rows in (cells, broken, huge):
            expected, found = (trained(program, rows, batch, start) for program in programs)
            assert found == expected, (inputs, hidden, taken, sizes, batch)
