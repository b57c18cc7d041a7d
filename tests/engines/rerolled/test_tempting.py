"""The hunt for wrong bits: graphs that tempt the grouping, trained as the reference trains them."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engines.rerolled import c_loops, pairs
from engines.rerolled.c_nest import Form
from tests.engines.compiled.compiling import compiled, difference, reference, set_leaves, train_by_hand, usable
from tests.engines.graphs import bits
from tests.engines.rerolled.tempting import networks, vectors

BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

FORMS = {
    "tcc, a row at a time": ("tcc", Form(rows=0, piece=1, units=3)),
    "tcc, three rows": ("tcc", Form(rows=3, accumulators=4)),
    "vectors of 8, two rows": ("gcc", Form(width=8, rows=2)),
    "vectors of 2, four rows": ("gcc", Form(width=2, rows=4, accumulators=3, units=2)),
    "vectors of 4, few registers": ("gcc", Form(width=4, registers=8, accumulators=16)),
    "zeros skipped": ("gcc", Form(width=8, sparse=True)),
}


@pytest.fixture(autouse=True, scope="module")
def nothing_is_too_small():
    """Weights travel together wherever they can, and C is divided, not only where it pays."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "MANY", 1)
        patch.setattr(c_loops, "ENOUGH", 1)
        yield


@st.composite
def schedules(draw):
    """Batch, rates, and steps call by call."""
    calls = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 7]), min_size=1, max_size=3))
    rates = draw(st.lists(st.sampled_from([0.1, 0.037, -0.3, 1.0, 0.0]), min_size=21, max_size=21))
    return draw(st.sampled_from([1, 3, 5])), rates, calls


def trained_difference(found, case, schedule):
    """What training in several calls gives otherwise than the reference; empty where nothing."""
    batch, rates, calls = schedule
    program, (graph, kinds, rows, *_) = found.program, case
    expected = train_by_hand(graph, kinds, graph.numbers, rows, rates, batch, sum(calls))
    set_leaves(found, graph.numbers)
    program.reset()
    losses = array("d")
    for steps in calls:
        steps = min(steps, len(expected.losses) - len(losses))
        updates = len(losses) // batch
        columns = array("d", [x for row in rows for x in row])
        losses += program.train(
            columns,
            rate=lambda update, updates=updates: rates[updates + update],
            batch=batch,
            steps=steps,
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


def check(engine, case, schedule):
    graph, kinds, _, wild, outputs = case
    first = reference(graph, graph.numbers)
    assume(first)
    found = compiled(engine, graph, kinds, graph.numbers, outputs)
    assert difference(found, graph.numbers, first) == ""
    for row in wild:
        if expected := reference(graph, row):
            assert difference(found, row, expected) == ""
    if "input" in kinds:
        assert trained_difference(found, case, schedule) == ""


def hunt(engine, graphs, examples):
    usable(engine)

    @settings(BUSY, max_examples=examples)
    @given(graphs, schedules())
    def agrees(case, schedule):
        check(engine, case, schedule)

    agrees()


GRAPHS = {"networks": networks(), "plain networks": networks(plain=True), "vectors": vectors()}
