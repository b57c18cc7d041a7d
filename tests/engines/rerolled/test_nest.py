"""Numbers -> loop nests: a nest gives back every number, and has the loops that a person would write."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numpy")

import numpy as np

from engines.rerolled.recover.nest import nests, strides


def digits(counts):
    return list(itertools.product(*map(range, counts)))


def spelled(nest, sequences):
    """Return the numbers of a nest, sequence by sequence."""
    return [
        [int(row[nest.start]) + sum(d * s[at] for d, s in zip(step, nest.strides)) for step in digits(nest.counts)]
        for at, row in enumerate(sequences)
    ]


# --- any numbers -------------------------------------------------------------------------------------------------

small = st.integers(-9, 9)
runs = st.tuples(small, st.lists(st.tuples(st.integers(1, 4), small), min_size=1, max_size=3))


@st.composite
def tables(draw):
    """Draw sequences of one length, made of pieces with regular parts and noise; and breaks."""
    rows = draw(st.integers(1, 3))
    pieces = []
    for _ in range(draw(st.integers(1, 4))):
        counts = draw(st.lists(st.integers(1, 4), max_size=3))
        steps = [draw(st.lists(small, min_size=rows, max_size=rows)) for _ in counts]
        bases = draw(st.lists(small, min_size=rows, max_size=rows))
        pieces += [
            [base + sum(d * s[row] for d, s in zip(step, steps)) for row, base in enumerate(bases)]
            for step in digits(counts)
        ]
    table = np.array(pieces).T
    return table, np.array(draw(st.lists(st.booleans(), min_size=len(pieces) - 1, max_size=len(pieces) - 1)), bool)


@settings(max_examples=150, deadline=None)
@given(tables(), st.booleans())
def test_nests_give_every_number_back(case, with_breaks):
    table, breaks = case
    found = nests(table, breaks if with_breaks else None)
    assert [nest.start for nest in found] == list(itertools.accumulate((nest.size for nest in found[:-1]), initial=0))
    assert np.hstack([spelled(nest, table) for nest in found]).tolist() == table.tolist()
    if with_breaks:
        begins = {nest.start for nest in found}
        assert begins >= {int(at) + 1 for at in np.flatnonzero(breaks)}


# --- strides of one operand --------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_strides_give_every_number_back_or_nothing(data):
    counts = data.draw(st.lists(st.integers(1, 4), max_size=3))
    offsets = [data.draw(st.lists(small, min_size=count, max_size=count)) for count in counts]
    base = data.draw(small)
    places = [base + sum(line[d] for line, d in zip(offsets, step)) for step in digits(counts)]
    found = strides(np.array(places), tuple(counts))
    assert found is not None
    lines = [[s * d for d in range(n)] if isinstance(s, int) else s for s, n in zip(found, counts)]
    assert [places[0] + sum(line[d] for line, d in zip(lines, step)) for step in digits(counts)] == places
    if len(places) > 1:
        places[-1] += 1
        found = strides(np.array(places), tuple(counts))
        assert found is None or len([count for count in counts if count > 1]) == 1
