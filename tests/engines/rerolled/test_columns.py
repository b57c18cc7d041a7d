"""Arithmetic over whole columns that the stages of loop recovery share, compared with loops in plain Python."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numpy")

import numpy as np

from engines.rerolled.recover import sums
from engines.rerolled.recover.layout import _order
from engines.rerolled.recover.sums import NONE, distinct, jump_pointers, read_once, stable_order, starts_of

NUMBERS = st.lists(st.integers(0, 9), max_size=30)


@st.composite
def chains(draw):
    """Draw the next node of each node, a later one or itself; and the nodes that have a next one, in any order."""
    size = draw(st.integers(1, 30))
    to = [
        draw(st.one_of(st.just(node), st.just(min(node + 1, size - 1)), st.integers(node, size - 1)))
        for node in range(size)
    ]
    return to, draw(st.permutations([node for node in range(size) if to[node] != node]))


@given(chains())
@settings(deadline=None)
def test_jump_pointers_finds_the_ends_of_chains(case):
    to, moved = case

    def end(node):
        return node if to[node] == node else end(to[node])

    found = jump_pointers(np.array(to, np.int32), np.array(moved, np.int32))
    assert found.tolist() == [end(node) for node in range(len(to))]


def test_jump_pointers_follows_a_long_chain_in_any_order():
    size = 100_000
    to = np.minimum(np.arange(1, size + 1, dtype=np.int32), size - 1)
    ascending = np.arange(size - 1, dtype=np.int32)
    for moved in (ascending, ascending[::-1], np.concatenate([ascending[1::2], ascending[::2]])):
        assert (jump_pointers(to.copy(), moved) == size - 1).all()


@given(st.lists(st.tuples(*[st.integers(NONE, 6)] * 3), min_size=1, max_size=20), st.integers(1, 20))
@settings(deadline=None)
def test_read_once_counts_the_reads_of_each_node(slots, chunk):
    """Columns are read in chunks; a node may be read twice in one chunk or in two, in one slot or in two."""
    nodes, loss, outputs = 7, 0, (1, 1, 2)
    found = SimpleNamespace(slots=np.array(slots, np.int32), nodes=nodes, loss=loss, outputs=outputs)
    reads = Counter([node for term in slots for node in term])
    expected = [reads[node] == 1 and node not in (loss, *outputs) for node in range(nodes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "CHUNK", chunk)
        assert read_once(found).tolist() == [*expected, False]


@given(st.lists(NUMBERS, max_size=3), st.integers(1, 20))
@settings(deadline=None)
def test_count_of_counts_each_number(columns, chunk):
    expected = Counter([number for column in columns for number in column])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "CHUNK", chunk)
        found = sums.count_of([np.array(column, np.int32) for column in columns], 10)
    assert found.tolist() == [expected[number] for number in range(10)]


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), max_size=20))
@settings(deadline=None)
def test_distinct_numbers_tuples_in_ascending_order(pairs):
    columns = np.array(pairs, np.int64).reshape(-1, 2).T
    first, number = distinct(*columns)
    ordered = sorted(set(pairs))
    assert first.tolist() == [pairs.index(pair) for pair in ordered]
    assert number.tolist() == [ordered.index(pair) for pair in pairs]


@given(NUMBERS)
def test_starts_of_sorted_numbers(numbers):
    numbers.sort()
    assert starts_of(np.array(numbers)).tolist() == [at for at, n in enumerate(numbers) if numbers.index(n) == at]


@given(
    st.lists(st.one_of(st.integers(0, 3), st.integers(0, (1 << 31) - 1)), max_size=30),
    st.sampled_from([np.int32, np.int64]),
)
@settings(deadline=None)
def test_stable_order_of_numbers_with_several_digits(numbers, kind):
    order = stable_order(np.array(numbers, kind), max(numbers, default=0) + 1)
    assert order.tolist() == sorted(range(len(numbers)), key=numbers.__getitem__)


@given(st.lists(st.one_of(st.integers(0, 30), st.integers(0, 10**6)), unique=True, max_size=30))
@settings(deadline=None)
def test_places_are_ordered_whether_they_are_dense_or_not(places):
    assert np.array(places, np.int32)[_order(np.array(places, np.int32))].tolist() == sorted(places)
