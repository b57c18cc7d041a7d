"""Minimal graphs on which recovered loops once gave wrong results, or easily could."""

from __future__ import annotations

import itertools
import math
import random
from array import array

import pytest

from tests.engines.compiled.compiling import compiled, set_leaves, train_by_hand, trains_alike, usable
from tests.engines.graphs import Graph, bits
from tests.engines.rerolled.rolling import form, of_form, share_all_weights, tape_of
from zoomgrad.engines.api import NonFiniteLoss
from zoomgrad.engines.rerolled.emit import c
from zoomgrad.engines.rerolled.rearrange.weight_reuse import pair_of_loops
from zoomgrad.engines.rerolled.reroll import reroll

pytestmark = pytest.mark.host

ENGINES = {
    "rerolled-numpy": lambda: usable("rerolled-numpy"),
    "tcc, three rows": lambda: usable(of_form("tcc", form(rows=3))),
    "vectors": lambda: usable(of_form("gcc", form(width=8, rows=2))),
    "rerolled-machine": lambda: usable("rerolled-machine"),
}


@pytest.fixture(autouse=True)
def nothing_is_too_small(monkeypatch):
    share_all_weights(monkeypatch)
    monkeypatch.setattr(c, "ENOUGH", 1)


def made(name, inputs, parameters, build):
    """Return a graph over numbers with all their digits, because small multiples would add up exactly in any order."""
    rng = random.Random(1337)
    graph = Graph(name, tuple(rng.gauss(0.0, 0.7) for _ in range(inputs + parameters)), build)
    return graph, ["input"] * inputs + ["parameter"] * parameters


def rows_for(kinds, count=7):
    rng = random.Random(7)
    return [[rng.gauss(0.0, 0.7) for kind in kinds if kind == "input"] for _ in range(count)]


def layer(given, x, units, *, transposed=False):
    """Return the sums of a layer whose weights are stored row by row or, if transposed, input by input."""
    weights = list(itertools.islice(given, len(x) * units))
    rows = [weights[n::units] if transposed else weights[n * len(x) : (n + 1) * len(x)] for n in range(units)]
    return [sum(w * v for w, v in zip(row, x)) for row in rows]


def squares(outputs):
    return sum(d * d for d in [o - 1.0 for o in outputs])


def outputs_of_parameters(Value, leaves):
    """Lanes outside the layer also read its weights, so its rows of five are adjacent, without padding."""
    x, p = leaves[:3], leaves[3:]
    doubled = [w * 2.0 for w in p]
    return [*doubled, squares(o.relu() for o in layer(iter(p), x, 5, transposed=True))]


def one_layer(Value, leaves):
    x, given = leaves[:4], iter(leaves[4:])
    return [squares(layer(given, x, 5))]


def two_layers(Value, leaves):
    x, given = leaves[:4], iter(leaves[4:])
    return [squares(layer(given, [o.relu() for o in layer(given, x, 5)], 2))]


NETWORKS = {"one layer": made("one_layer", 4, 20, one_layer), "two layers": made("two_layers", 4, 30, two_layers)}


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_loss_that_is_not_finite_leaves_what_was_there(engine, network, batch):
    """Deferred updates are applied, but not the failing step's. Rows taken together with a failing one still count."""
    graph, kinds = NETWORKS[network]
    rows, rates = rows_for(kinds), [0.01] * 14
    found = compiled(ENGINES[engine](), graph, kinds, graph.numbers)
    for at in range(2, 7):
        spoiled = [list(row) for row in rows]
        spoiled[at][1] = math.nan
        expected = train_by_hand(graph, kinds, graph.numbers, spoiled, rates, batch, 14)
        assert len(expected.losses) == at
        set_leaves(found, graph.numbers)
        found.program.zero_grad()
        with pytest.raises(NonFiniteLoss) as error:
            columns = array("d", [x for row in spoiled for x in row])
            found.program.train(columns, rate=0.01, batch=batch, steps=14)
        assert error.value.step == at
        assert bits(found.program.parameters) == bits(expected.parameters)
        assert bits(found.program.gradients) == bits(expected.gradients)


# --- chains ------------------------------------------------------------------------------------------------------


def test_a_chain_whose_steps_branch_keeps_the_reference_bits():
    """Two lanes continue the same one, so their chain gets shorter and wider: it has no places of its own."""

    def build(Value, leaves):
        a, b, c = leaves[:8], leaves[8:16], leaves[16:]
        first = [x * y for x, y in zip(a, b)]
        second = [first[n // 2] * c[n] for n in range(6)]
        third = [second[n // 2] * c[n + 1] for n in range(4)]
        fourth = [x * c[7] for x in third[:3]]
        return [*first, *second, *third, *fourth, sum(x.tanh() for x in [*fourth, *third, *second, *first])]

    for engine in ENGINES.values():
        trains_alike(engine(), *made("branches", 8, 16, build), rows_for(["input"] * 8), 3, 7)


# --- weight reuse ------------------------------------------------------------------------------------------------


def test_no_pair_where_vectors_would_reach_into_the_next_row():
    graph, kinds = made("outputs_of_parameters", 3, 15, outputs_of_parameters)
    assert pair_of_loops(reroll(tape_of(graph, kinds, range(15)))) is None


# --- outputs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("batch", [1, 4])
def test_outputs_of_a_parameter_and_of_inputs_after_rows_together(engine, batch):
    """This holds even if a row fails: straight-line code gives the values that its forward pass read."""
    graph, kinds = NETWORKS["two layers"]
    seen = graph._replace(build=lambda Value, v: [v[4], v[1], v[-1], v[3], *graph.build(Value, v)])
    for special in (0.3, math.inf):
        rows = array("d", [x for row in rows_for(kinds, 8) for x in row])
        rows[4 * 6 + 1] = special
        outputs = []
        for chosen in (usable("tcc"), ENGINES[engine]()):
            program = compiled(chosen, seen, kinds, seen.numbers, range(5)).program
            try:
                program.train(rows, rate=0.01, batch=batch)
            except NonFiniteLoss as error:
                assert error.step == 6
            outputs.append([bits(program.outputs[:4]), bits(program.inputs)])
        assert outputs[0] == outputs[1], special


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("batch", [1, 2])
def test_a_parameter_that_the_graph_does_not_use_is_updated_too(engine, batch):
    """Its gradient is whatever the caller puts there."""
    chosen = ENGINES[engine]()
    x, p, unused = (chosen.Value(v) for v in (1.0, 2.0, 3.0))
    program = chosen.compile(p * x, inputs=[x], parameters=[unused, p])
    program.gradients[:] = array("d", [8.0, 4.0])
    program.train(array("d", [1.0, 1.0]), rate=0.5, batch=batch)
    assert list(program.parameters) == {1: [-1.0, -1.0], 2: [1.0, 0.5]}[batch]
    assert list(program.gradients) == [0.0, 0.0]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_input_that_the_graph_does_not_use_keeps_its_number(engine):
    """A loop over three gradients ends where the inputs begin, so a vector of four would reach into them."""
    chosen = ENGINES[engine]()
    x, *p = (chosen.Value(0.1 * number) for number in range(9))
    loss = sum(each * each for each in p).sigmoid() + p[4] * 2.0
    program = chosen.compile(loss, inputs=[x], parameters=p)
    program.train(array("d", [1.0, 1.0]), rate=0.5, batch=4)
    assert list(program.inputs) == [1.0]
