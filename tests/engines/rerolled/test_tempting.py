"""Random tempting graphs: engines with recovered loops must compute and train them with the reference's bits."""

from __future__ import annotations

import functools
import operator
from array import array

import pytest
from hypothesis import assume, given, settings

from tests.engines.compiled.compiling import (
    by_kernel,
    compiled,
    difference,
    reference,
    set_leaves,
    train_by_hand,
    usable,
)
from tests.engines.graphs import bits
from tests.engines.rerolled.rolling import SLOW, form, of_form
from tests.engines.rerolled.tempting import GRAPHS
from tests.examples import examples
from zoomgrad.engines.rerolled.emit import c
from zoomgrad.engines.rerolled.rearrange import weight_reuse as pairs
from zoomgrad.engines.rerolled.recover import groups

FORMS = {
    "tcc, a row at a time": ("tcc", form(rows=0, piece=1, units=3)),
    "tcc, three rows": ("tcc", form(rows=3, accumulators=4)),
    "vectors of 8, two rows": ("gcc", form(width=8, rows=2)),
    "vectors of 2, four rows": ("gcc", form(width=2, rows=4, accumulators=3, units=2)),
    "vectors of 4, few registers": ("gcc", form(width=4, registers=8, accumulators=16)),
    "zeros skipped": ("gcc", form(width=8, sparse=True)),
}


@pytest.fixture(autouse=True, scope="module")
def nothing_is_too_small():
    """Lower the thresholds, so that small graphs also share weight loads between rows and divide their C."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "MANY", 1)
        patch.setattr(c, "ENOUGH", 1)
        yield


def trained_difference(found, case):
    """Describe where training in several calls differs from the reference; return an empty text if nowhere."""
    (graph, kinds, _, rows, _, (batch, rates, calls)), program = case, found.program
    expected = train_by_hand(graph, kinds, graph.numbers, rows, rates, batch, sum(calls))
    set_leaves(found, graph.numbers)
    program.zero_grad()
    columns, losses = array("d", [x for row in rows for x in row]), array("d")
    for call in calls:
        updates = len(losses) // batch
        losses += program.train(
            columns,
            rate=lambda update, updates=updates: rates[updates + update],
            batch=batch,
            steps=min(call, len(expected.losses) - len(losses)),
            first_row=len(losses) % len(rows),
        )
    pairs = {
        "losses": (losses, expected.losses),
        "parameters": (program.parameters, expected.parameters),
        "gradients": (program.gradients, expected.gradients),
    }
    return "\n".join(
        f"{name}: {list(have)}, not {list(want)}" for name, (have, want) in pairs.items() if bits(have) != bits(want)
    )


def check(engine, case):
    graph, kinds, outputs, *_ = case
    first = reference(graph, graph.numbers)
    assume(first)
    found = compiled(engine, graph, kinds, graph.numbers, outputs)
    assert difference(found, graph.numbers, first) == ""
    if expected := reference(graph, case.wild):
        assert difference(found, case.wild, expected) == ""
    if "input" in kinds:
        assert trained_difference(found, case) == ""


def hunt(engine, graphs, count):
    """count: graphs in the exhaustive suite; a push draws fewer."""
    usable(engine)

    @settings(max_examples=examples(count), deadline=None)
    @given(graphs)
    def agrees(case):
        check(engine, case)

    agrees()


@pytest.mark.parametrize("graphs", GRAPHS)
@pytest.mark.parametrize("name", by_kernel(["rerolled-numpy", "rerolled-tcc"]))
def test_tempting_graphs_keep_the_reference_bits(name, graphs):
    hunt(usable(name), GRAPHS[graphs], 150)


@pytest.mark.host
@pytest.mark.parametrize("graphs", GRAPHS)
def test_tempting_graphs_keep_the_bits_if_all_hashes_collide(monkeypatch, graphs):
    monkeypatch.setattr(groups, "mix", lambda key: key * key.dtype.type(0))
    hunt(usable("rerolled-numpy"), GRAPHS[graphs], 30)


ANY = functools.reduce(operator.or_, GRAPHS.values())


@pytest.mark.host
@pytest.mark.parametrize("name", FORMS)
def test_tempting_graphs_keep_the_bits_in_any_form(name):
    compiler, exactly = FORMS[name]
    hunt(of_form(compiler, exactly), ANY, 100 if compiler == "tcc" else 40)


@pytest.mark.host
@pytest.mark.parametrize("name", SLOW)
def test_tempting_graphs_keep_the_bits_under_optimising_compilers(name):
    hunt(usable(name), ANY, 15)
