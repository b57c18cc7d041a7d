"""Random tempting graphs: engines with recovered loops must compute and train them with the reference's bits."""

from __future__ import annotations

import functools
import operator
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings

from tests.engines.compiled.compiling import (
    by_kernel,
    compiled,
    difference,
    reference,
    train_by_hand,
    training_difference,
    usable,
)
from tests.engines.rerolled.rolling import SLOW, WIDTHS, form, machine, of_form, share_all_weights
from tests.engines.rerolled.tempting import GRAPHS, texts
from tests.examples import examples
from zoomgrad.engines.rerolled.emit import c
from zoomgrad.engines.rerolled.fitted import SCALARS, VECTORS
from zoomgrad.engines.rerolled.rearrange import in_rounds
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
        share_all_weights(patch)
        patch.setattr(c, "ENOUGH", 1)
        yield


def check(engine, case):
    graph, kinds, outputs, rows, wild, (batch, rates, calls) = case
    first = reference(graph, graph.numbers)
    assume(first)
    found = compiled(engine, graph, kinds, graph.numbers, outputs)
    assert difference(found, graph.numbers, first) == ""
    if expected := reference(graph, wild):
        assert difference(found, wild, expected) == ""
    if "input" in kinds:
        trained = train_by_hand(graph, kinds, graph.numbers, rows, rates, batch, sum(calls))
        assert training_difference(found, graph.numbers, rows, trained, rates, batch, calls) == ""


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
    hunt(usable(name), GRAPHS[graphs], 80)


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
    hunt(of_form(compiler, exactly), ANY, 80 if compiler == "tcc" else 40)


@pytest.mark.host
@pytest.mark.parametrize("name", SLOW)
def test_tempting_graphs_keep_the_bits_under_optimising_compilers(name):
    hunt(usable(name), ANY, 15)


ROUNDS = {"scalars": of_form("tcc", SCALARS), "vectors": of_form("gcc", replace(VECTORS, units=1))}


@pytest.mark.host
@pytest.mark.parametrize(
    "engine",
    [
        *(pytest.param(engine, id=name) for name, engine in ROUNDS.items()),
        *(pytest.param(machine(*width.values), id=f"machine-{width.values[0]}", marks=width.marks) for width in WIDTHS),
    ],
)
def test_rounds_keep_the_reference_bits(engine, monkeypatch):
    """Loops that differ in places and counts run in rounds."""
    monkeypatch.setattr(in_rounds, "MANY", 1)
    monkeypatch.setattr(in_rounds, "ROUNDS", 2)
    hunt(engine, texts, 20)
