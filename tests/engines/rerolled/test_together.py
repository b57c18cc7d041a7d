"""Rows taken together, in tiles of sums, by one thread or several: the bits of random networks, vectors and batches."""

from __future__ import annotations

import random
from array import array
from dataclasses import replace

import pytest

from tests.engines.compiled.compiling import engine_of, usable
from tests.engines.graphs import bits
from tests.engines.rerolled.rolling import WIDTHS, form, machine, nothing_is_too_small, of_form  # noqa: F401  (a fixture)
from zoomgrad.engines.api import NonFiniteLoss
from zoomgrad.engines.rerolled.rearrange import together, transposed

pytestmark = pytest.mark.host


def program_of(engine, inputs, hidden, seed, tied=False):
    """Compile a network with one to three hidden layers, whose sizes and weights depend on the seed.

    The last input is the target. The first layer's sums are outputs, and its units also skip later layers.
    Beside it are 13 units with one bias, whose weights have no padding.
    tied: whether the first layer's weights of the last input also multiply its units.
    """
    chance = random.Random(seed)
    *x, target = (engine.Value(0.0) for _ in range(inputs))
    parameters, layers, sums = [], [x], []
    for units in [hidden, 5, 9][: 1 + seed % 3]:
        w = [[engine.Value(chance.uniform(-1, 1)) for _ in layers[-1]] for _ in range(units)]
        b = [engine.Value(chance.uniform(-1, 1)) for _ in range(units)]
        parameters += [*(p for row in w for p in row), *b]
        sums.append([sum((wi * xi for wi, xi in zip(row, layers[-1])), bias) for row, bias in zip(w, b)])
        layers.append([v.tanh() if seed == 2 and n % 2 else v.relu() for n, v in enumerate(sums[-1])])
    units, shared = 8 if tied else 13, engine.Value(0.3)
    w = [[engine.Value(chance.uniform(-1, 1)) for _ in x[:3]] for _ in range(units)]
    parameters += [*(p for row in w for p in row), shared]
    beside = [sum((wi * xi for wi, xi in zip(row, x[:3])), shared).tanh() for row in w]
    v = [engine.Value(chance.uniform(-1, 1)) for _ in layers[-1]]
    others = parameters[len(x) - 1 :: len(x)] if tied else [unit.tanh() for unit in layers[1][1:]]
    around = [(unit * other).relu() for unit, other in zip(layers[1], others)]
    score = sum((vi * n for vi, n in zip(v, layers[-1])), sum([*around, *beside], engine.Value(0.1)))
    outputs, error = [score, *sums[0]], score - target
    return engine.compile(error * error, inputs=[*x, target], parameters=[*parameters, *v], outputs=outputs)


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


def engines_of(chance, seed):
    """Number of rows that they take together -> engines for C of random forms: for one thread, or for 1, 2 and 7."""
    rows = chance.choice([2, 3, 7, 16])
    sizes = {"width": chance.choice([1, 2, 4, 8]), "registers": chance.choice([16, 32])}
    if seed < 4:
        sizes |= {"sparse": seed % 2 == 1, "cache": 8 if seed < 2 else 1 << 18}
        native = engine_of("", form(rows, **sizes | {"width": 4, "registers": 16}), code="loops", target="machine")
        return rows, [of_form("gcc", form(rows, **sizes)), native]
    forms = [replace(form(rows, **sizes), threads=threads) for threads in (1, 2, 7)]
    return rows, [engine_of("gcc", each, "-O0", code="loops", threads=each.threads) for each in forms]


@pytest.mark.parametrize(("seed", "tied"), [*((seed, False) for seed in (*range(6), 7)), (0, True)])
def test_random_networks_keep_their_bits(monkeypatch, seed, tied):
    """The last seeds divide steps among threads."""
    monkeypatch.setattr(together, "LEAST_WORK", 0)
    monkeypatch.setattr(transposed, "MANY", 1)
    chance = random.Random(seed)
    inputs, hidden = chance.randint(3, 13), chance.choice([2, 3, 5, 8, 9, 10, 37, 50, 70]) + 3 * tied
    taken, engines = engines_of(chance, seed)
    cells = array("d", [chance.choice([0.0, -0.0, chance.uniform(-1, 1)]) for _ in range(inputs * 11)])
    broken, huge = array("d", cells), array("d", cells)
    broken[inputs * 6] = float("nan")
    huge[inputs * 7 : inputs * 8] = array("d", [1e200] * inputs)
    reference, *programs = [program_of(usable(engine), inputs, hidden, seed, tied) for engine in ("tcc", *engines)]
    start = array("d", reference.parameters)
    for batch in (1, 2, 3, taken, taken + 1, 2 * taken + 5):
        for rows in (cells, broken, huge):
            expected = trained(reference, rows, batch, start)
            for program, engine in zip(programs, engines):
                assert trained(program, rows, batch, start) == expected, (inputs, hidden, engine.options, batch)


def test_what_rows_compute_fits_into_the_cache():
    assert [replace(form(), rows=None, cache=2 << 20).rows_together(74, n, 76_810) for n in (494, 4_238)] == [48, 24]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_turn_whose_first_row_fails_adds_nothing(width):
    """The workspace still holds the gradients of an earlier row, which the failed row must not add."""
    inputs = 13
    rows = array("d", [0.0, 0.5, -0.5] * inputs + [1e200] * 3 + [0.0] * (inputs - 3))
    reference, program = (program_of(usable(engine), inputs, 8, 0) for engine in ("tcc", machine(width, sparse=True)))
    for each in (reference, program):
        each.train(rows, rate=0.05, batch=1000, steps=3)
        with pytest.raises(NonFiniteLoss):
            each.train(rows, rate=0.05, batch=1000, steps=1, first_row=3)
    assert bits(program.gradients) == bits(reference.gradients)
