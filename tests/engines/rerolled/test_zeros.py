"""Skipping inputs of 0.0 changes no bit, even with -0.0 and with infinite or NaN factors."""

from __future__ import annotations

import math
import random
from array import array

import pytest

import engines
from engines.api import NonFiniteLoss
from engines.rerolled.engine import reroll
from engines.rerolled.rearrange.zeros import live
from tests.engines.compiled.compiling import usable
from tests.engines.graphs import bits

pytestmark = pytest.mark.host

INPUTS, HIDDEN = 12, 9
INF = math.inf


def network(Value, weights):
    """Return the squared error of a small network, its inputs and its parameters."""
    inputs = [Value(1.0) for _ in range(INPUTS + 1)]
    given = [Value(w) for w in weights]
    it = iter(given)
    hidden = [sum((next(it) * x for x in inputs[:-1]), next(it)).relu() for _ in range(HIDDEN)]
    out = sum((next(it) * h for h in hidden), next(it))
    return (out - inputs[-1]) ** 2, inputs, given


COUNT = HIDDEN * (INPUTS + 1) + HIDDEN + 1


def weights(seed):
    rng = random.Random(seed)
    return [rng.uniform(-1, 1) for _ in range(COUNT)]


def train(name, start, rows, rates, batch):
    """Train over the rows once; return the bits of losses and parameters, and the step that was not finite, if any."""
    engine = usable(name)
    loss, inputs, parameters = network(engine.Value, weights(1))
    program = engine.compile(loss, inputs=inputs, parameters=parameters)
    program.parameters[:] = array("d", start)
    flat = array("d", [x for row in rows for x in row])
    losses, failed = [], None
    try:
        losses = list(program.train(flat, rate=lambda update: rates[update], batch=batch))
    except NonFiniteLoss as error:
        failed = error.step
    return bits(losses), bits(program.parameters), failed


def rows(seed, share, special=()):
    rng = random.Random(seed)
    made = [
        [rng.uniform(-1, 1) if rng.random() > share else rng.choice([0.0, -0.0]) for _ in range(INPUTS + 1)]
        for _ in range(20)
    ]
    for at, value in enumerate(special):
        made[5 + at][at] = value
    return made


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 1.0])
def test_skipping_changes_no_bit(share, batch):
    same = [train(name, weights(2), rows(3, share), [0.05] * 20, batch) for name in ("tcc", "rerolled-clang-sparse")]
    assert same[0] == same[1]


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("bad", [INF, -INF, math.nan, 1e308, -1e308])
def test_weights_that_are_not_finite_are_not_skipped(bad, batch):
    """If a zero meets an infinite weight, the product is NaN, and so is the loss."""
    # The bound on weights has four sums of vectors: units 0 to 7 and unit 8, of inputs with even and odd numbers.
    last = 8 * (INPUTS + 1)
    for at in (0, 5, 3 * (INPUTS + 1) + 2, *range(last, last + 4)):
        start = weights(2)
        start[at] = bad
        same = [train(name, start, rows(3, 0.8), [0.05] * 20, batch) for name in ("tcc", "rerolled-clang-sparse")]
        assert same[0] == same[1], at


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("rate", [1e300, 1.7e308, -1e300, 1e150])
def test_weights_become_infinite_at_the_same_step(rate, batch):
    rates = [0.05] * 2 + [rate] + [0.05] * 17
    same = [train(name, weights(2), rows(3, 0.8), rates, batch) for name in ("tcc", "rerolled-clang-sparse")]
    assert same[0][::2] == same[1][::2], "the losses or the failing step differ"


@pytest.mark.parametrize("special", [(INF,), (math.nan,), (1e200, -1e200), (5e-324, 1e-310)])
def test_inputs_of_any_size(special):
    same = [train(name, weights(2), rows(3, 0.8, special), [0.05] * 20, 1) for name in ("tcc", "rerolled-clang-sparse")]
    assert same[0][::2] == same[1][::2]


def test_the_loops_that_skip():
    """Only the first layer's sum and the sink of its weights skip zeros."""
    engine = engines.load("rerolled-tcc")
    loss, inputs, parameters = network(engine.Value, weights(1))
    loops = reroll(engine.tape(loss, inputs=inputs, parameters=parameters))
    found = live(loops)
    assert found.skipping.inputs == (0, INPUTS)
    ((loop, segment),) = found.sums.items()
    assert loops.loops[loop].segments[segment].counts == (INPUTS,)
    ((sink, lane),) = found.sinks.items()
    assert loops.loops[sink].counts[lane] == INPUTS


def test_weights_that_another_sink_adds_to_do_not_skip():
    engine = engines.load("rerolled-tcc")
    loss, inputs, parameters = network(engine.Value, weights(1))
    decayed = loss + sum(p * p for p in parameters) * 1e-3
    assert live(reroll(engine.tape(decayed, inputs=inputs, parameters=parameters))) is None
