"""Every compiled engine compared with the reference: it may be faster than the interpreter, never different from it."""

from __future__ import annotations

import itertools
import math
from array import array

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.engines.compiled.compiling import (
    CLASSIFIER_ROWS,
    COMPILED,
    by_kernel,
    by_text,
    compiled,
    difference,
    engine_of,
    examples,
    is_slow,
    reference,
    trains_alike,
    usable,
)
from tests.engines.graphs import NAMED, classifier, leaf_values, random_graphs, side_by_side, tame_values
from zoomgrad.engines.api import NonFiniteLoss
from zoomgrad.engines.straight.pieces import Form

KINDS = ("input", "parameter", "constant")


def spread(numbers, order):
    """Return a kind for each leaf, cycling through `order`."""
    return [kind for kind, _ in zip(itertools.cycle(order), numbers)]


def agrees(engine, graph, kinds, rows, outputs=()):
    """Trace over the first row that the reference can compute; assert equal results on all rows that it can compute.

    Returns False if the reference can compute none.
    """
    expected = [(row, outcome) for row in rows if (outcome := reference(graph, row))]
    if expected:
        found = compiled(engine, graph, kinds, expected[0][0], outputs)
        for row, outcome in expected:
            assert difference(found, row, outcome) == ""
    return bool(expected)


@pytest.mark.parametrize("order", ["parameter", pytest.param("input parameter", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", by_kernel(COMPILED))
def test_all_programs_side_by_side_keep_the_bits(name, order):
    graph = side_by_side(NAMED)
    outputs = range(len(NAMED))
    assert agrees(usable(name), graph, spread(graph.numbers, order.split()), [graph.numbers], outputs)


# --- random graphs -----------------------------------------------------------------------------------------------


@st.composite
def cases(draw, values=leaf_values, most_rows=3):
    """Draw a graph, the kinds of its leaves, some rows of numbers for them, and the indices of outputs."""
    graph = draw(random_graphs(values))
    count = len(graph.numbers)
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=count, max_size=count))
    kinds = [k if math.isfinite(x) or k != "constant" else "input" for k, x in zip(kinds, graph.numbers)]
    row = st.tuples(*(st.just(x) if k == "constant" else values for x, k in zip(graph.numbers, kinds)))
    rows = [graph.numbers, *draw(st.lists(row, max_size=most_rows - 1))]
    return graph, kinds, rows, draw(st.lists(st.integers(0, 99), max_size=3))


@pytest.mark.parametrize("name", by_kernel(name for name in COMPILED if not is_slow(name)))
def test_random_graphs_keep_the_reference_bits(name):
    engine = usable(name)

    @settings(max_examples=examples(name), deadline=None)
    @given(cases())
    def agree(case):
        assume(agrees(engine, *case))

    agree()


forms = st.builds(
    Form,
    piece=st.sampled_from([1, 2, 7, 400, 0]),
    expression=st.sampled_from([1, 3, 16, 50]),
    units=st.sampled_from([1, 3]),
)


@pytest.mark.host
@settings(deadline=None)
@given(form=forms, case=cases())
def test_random_graphs_keep_the_bits_in_any_form(form, case):
    assume(agrees(usable(engine_of("tcc", form)), *case))


# --- training ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", by_kernel(COMPILED))
def test_a_network_trains_as_by_hand(name, batch):
    _, expected = trains_alike(usable(name), *classifier(), CLASSIFIER_ROWS, batch, 11)
    assert expected.failed is None, "the reference failed, so fewer steps were compared"


@pytest.mark.parametrize("name", by_text(COMPILED))
def test_random_graphs_train_as_by_hand(name):
    engine = usable(name)

    @settings(max_examples=examples(name), deadline=None)
    @given(data=st.data(), batch=st.integers(1, 3), steps=st.integers(0, 7))
    def alike(data, batch, steps):
        graph, kinds, _, _ = data.draw(cases(tame_values, most_rows=1))
        width = kinds.count("input")
        assume(width)
        row = st.lists(tame_values, min_size=width, max_size=width)
        rows = data.draw(st.lists(row, min_size=1, max_size=4))
        assume(reference(graph, graph.numbers))  # otherwise it can't be traced
        found, expected = trains_alike(engine, graph, kinds, rows, batch, steps)
        if isinstance(expected.failed, float):
            parameters = list(found.program.parameters)
            columns, first_row = array("d", itertools.chain(*rows)), len(expected.losses) % len(rows)
            with pytest.raises(NonFiniteLoss) as error:
                found.program.train(columns, rate=1.0, batch=batch, first_row=first_row)
            assert error.value.step == 0
            assert list(found.program.parameters) == parameters

    alike()
