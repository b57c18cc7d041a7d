"""Zeros are skipped only where that changes no bit, on a network whose loss stays finite while its weights do not.

In other networks the first non-finite loss ends the training before a skipped `0.0 * inf` can show.
"""

from __future__ import annotations

import itertools
import math
import random
from array import array

import pytest

from tests.engines.compiled.compiling import compiled, train_by_hand, training_difference, usable
from tests.engines.graphs import Graph, classifier
from tests.engines.rerolled.rolling import form, of_form, share_all_weights, tape_of, tape_of_workload
from zoomgrad.engines.api import NonFiniteLoss
from zoomgrad.engines.compiled.lower import lower
from zoomgrad.engines.rerolled.fitted import fitted
from zoomgrad.engines.rerolled.rearrange.zeros import skip_zeros
from zoomgrad.engines.rerolled.reroll import reroll
from zoomgrad.engines.rerolled.step.language import TakeRows
from zoomgrad.engines.rerolled.step.plain import plain
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host

FEATURES, HIDDEN = 12, 9  # the first 8 inputs are listed in vectors
WEIGHTS = HIDDEN * FEATURES
PARAMETERS = WEIGHTS + 2 * HIDDEN


def masked(Value, leaves):
    """Build a network with a finite loss: `max` drops NaN, which is not above -0.5, and tanh is bounded."""
    given = iter(leaves)
    x, (target,) = (list(itertools.islice(given, count)) for count in (FEATURES, 1))
    weights, biases, last = (list(itertools.islice(given, count)) for count in (WEIGHTS, HIDDEN, HIDDEN))
    rows = [weights[at : at + FEATURES] for at in range(0, WEIGHTS, FEATURES)]
    hidden = [sum((w * v for w, v in zip(row, x)), b).max(-0.5).tanh() for row, b in zip(rows, biases)]
    # The sum occurs twice, so a hidden unit's gradient is twice a weight, which may overflow when the sum does not.
    output = sum(v * h for v, h in zip(last, hidden)) + sum(v * h for v, h in zip(last, hidden))
    return [*hidden, (output - target).max(-3.0).tanh()]


def start(others=()):
    """Return numbers for all leaves. others: parameter index -> number in place of the drawn one."""
    rng = random.Random(1337)
    drawn = [rng.gauss(0.0, 0.5) for _ in range(FEATURES + 1 + PARAMETERS)]
    for index, number in dict(others).items():
        drawn[FEATURES + 1 + index] = number
    return tuple(drawn)


GRAPH = Graph("masked", start(), masked)
KINDS = ["input"] * (FEATURES + 1) + ["parameter"] * PARAMETERS


FORMS = {"gcc, no vectors": form(rows=0, sparse=True), "gcc, many rows at once": form(width=8, rows=99, sparse=True)}


@pytest.fixture(scope="module", params=["rerolled-clang-sparse", "rerolled-machine-sparse", *FORMS])
def network(request):
    """The network, compiled once with zeros skipped: by two engines, and gcc without vectors and with them."""
    chosen = FORMS.get(request.param)
    engine = usable(of_form(request.param.split(",")[0], chosen) if chosen else request.param)
    with pytest.MonkeyPatch.context() as patch:
        share_all_weights(patch)
        step = lower(tape_of(GRAPH, KINDS), engine.options)
        names = fitted(engine.options).rearrangements
        assert step.skips
        assert any(isinstance(s, TakeRows) for s in step.statements()) == ("rows together" in names)
        return compiled(engine, GRAPH, KINDS, GRAPH.numbers)


ROWS = {
    "no zeros": [0.5, -0.25, 0.75, 1.0, -1.5, 0.1] * 2 + [0.3],
    "zeros": [0.0, -0.25, 0.0, 0.0, -1.5, 0.0] * 2 + [0.3],
    "zeros of both signs": [-0.0, -0.25, 0.0, -0.0, 1.5, 0.7] * 2 + [0.3],
    "all zeros": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0] * 2 + [0.3],
    "the largest numbers": [1e308, 0.0, -1e308, 0.0, 0.0, 0.0] * 2 + [0.3],
    "NaN": [math.nan, 0.0, 1.0, 0.0, 0.5, 0.0] * 2 + [0.3],
    "infinities": [math.inf, 0.0, 1.0, 0.0, -math.inf, 0.0] * 2 + [0.3],
}
AT_REST = dict.fromkeys(range(WEIGHTS, WEIGHTS + HIDDEN), 0.0)
STARTS = {
    "finite weights": start(),
    "an infinite weight": start({0: math.inf}),
    "the last weight is infinite": start({WEIGHTS - 1: math.inf}),
    "an input's weights are infinite": start({at: math.inf if at % 8 else -math.inf for at in range(0, WEIGHTS, 12)}),
    "a weight is NaN": start({14: math.nan}),
    "a weight's square is infinite": start({9: 1e200, 10: -1e200}),
    "an infinite weight of the output": start({WEIGHTS + HIDDEN + 1: math.inf}),
    "an infinite gradient": start({**AT_REST, WEIGHTS + HIDDEN: 1.7e308}),
}


def agrees(network, numbers, rows, rates, batch):
    """Assert equal losses, parameters and gradients, and the same failure if the reference's loss is not finite."""
    expected = train_by_hand(GRAPH, KINDS, numbers, rows, rates, batch, len(rates))
    assert training_difference(network, numbers, rows, expected, rates, batch) == ""
    if isinstance(expected.failed, float):
        with pytest.raises(NonFiniteLoss):
            network.program.train(array("d", rows[len(expected.losses) % len(rows)]), rate=1.0, batch=batch)
    return expected


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("weights", STARTS)
def test_training_keeps_the_bits(network, weights, batch):
    for row in ROWS.values():
        agrees(network, STARTS[weights], [row, ROWS["no zeros"], ROWS["zeros"]], [0.1] * 7, batch)
        agrees(network, STARTS[weights], [ROWS["no zeros"], row, ROWS["zeros"]], [0.1] * 7, batch)


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_an_update_makes_weights_infinite(network, batch):
    """Zeros of the next row meet the infinite weights, while the biases stay finite."""
    large = [0.5, -0.25, 1e10, 1.0, 0.0, 0.1, *[0.0] * 6, 0.3]
    numbers = start(dict.fromkeys(range(2, WEIGHTS, FEATURES), 0.0))
    for count in (batch, 2 * batch):
        rows = [large] * count + [ROWS["all zeros"], ROWS["zeros"]]
        trained = agrees(network, numbers, rows, [1e300, *[0.1] * (count + 4)], batch)
        assert not all(map(math.isfinite, trained.parameters[:WEIGHTS]))


def test_a_batch_has_more_rows_than_a_word_has_bits(network):
    rng = random.Random(1337)
    rows = [[rng.choice((0.0, 0.5, -1.0)) for _ in range(FEATURES + 1)] for _ in range(70)]
    agrees(network, start(), rows, [0.1] * 71, 70)


# --- loops that skip zeros ---------------------------------------------------------------------------------------


def with_more(more):
    """Return the loops of a network with a further term in its loss: a function of the first layer's parameters."""
    graph, kinds = classifier(FEATURES, HIDDEN, 3)
    first = FEATURES + 3

    def build(Value, leaves):
        *values, loss = graph.build(Value, leaves)
        return [*values, loss + more(leaves[first : first + HIDDEN * (FEATURES + 1)])]

    return reroll(tape_of(Graph("more", graph.numbers, build), kinds))


OTHERS = {"their squares": lambda p: sum(w * w for w in p), "one of them": lambda p: p[3] * 2.0}


@pytest.mark.parametrize("what", OTHERS)
def test_nothing_is_skipped_if_something_else_updates_a_weight(what):
    """The bound on weights assumes that only the layer's own sink updates them."""
    assert skip_zeros(plain(with_more(OTHERS[what])), form()).skips is None


@pytest.mark.parametrize("name", ["moons", "conv-1d"])
def test_nothing_is_skipped_if_inputs_differ_between_lanes(name):
    assert skip_zeros(plain(reroll(tape_of_workload(workloads.load(name)))), form()).skips is None
