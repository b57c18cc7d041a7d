"""Break-even: which engine has the least total time after how many images, as arithmetic and in the report."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zoomgrad.reports.measured.table import cells
from zoomgrad.reports.sections.break_even import (
    NEVER,
    Cost,
    about,
    break_even,
    costs,
    overtakes,
    winners,
)
from zoomgrad.results.record import Cell


def cost(compile_seconds, image_seconds, engine="one"):
    return Cost(engine, "", compile_seconds, image_seconds)


def sequence(*found):
    """Return (engine, images) of each winner among costs given as (compile, image) seconds and named a, b, c …"""
    named = [cost(*seconds, engine=name) for name, seconds in zip("abcdefgh", found, strict=False)]
    return [(winner.cost.engine, winner.images) for winner in winners(named)]


# The arithmetic


@pytest.mark.parametrize(
    ("one", "other", "images"),
    [
        ((10.0, 1.0), (0.0, 2.0), 11),  # after 10 both have taken 20 s
        ((10.5, 1.0), (0.0, 2.0), 11),
        ((0.5, 1.0), (0.0, 2.0), 1),  # ahead before the first image is done
        ((0.0, 2.0), (10.0, 1.0), NEVER),
        ((1.0, 1.0), (2.0, 2.0), 1),
        ((2.0, 2.0), (1.0, 1.0), NEVER),
        ((0.0, 1.0), (0.0, 2.0), 1),  # neither compiles
        ((0.0, 2.0), (0.0, 1.0), NEVER),
        ((1.0, 1.0), (2.0, 1.0), 1),  # parallel lines
        ((2.0, 1.0), (1.0, 1.0), NEVER),
        ((1.0, 1.0), (1.0, 1.0), NEVER),  # equal
        ((1e300, 1.0), (0.0, 1.0 + 1e-15), NEVER),  # more images than a number can count
    ],
)
def test_an_engine_overtakes_another_once_it_stays_ahead(one, other, images):
    assert overtakes(cost(*one), cost(*other)) == images


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], []),
        ([(5.0, 1.0)], [("a", 1)]),
        ([(0.0, 2.0), (10.0, 1.0)], [("a", 1), ("b", 11)]),
        ([(10.0, 1.0), (0.0, 2.0)], [("b", 1), ("a", 11)]),
        ([(1.0, 1.0), (2.0, 2.0)], [("a", 1)]),
        ([(0.0, 2.0), (0.0, 1.0)], [("b", 1)]),
        ([(0.5, 1.0), (0.0, 2.0)], [("a", 1)]),
        ([(1.0, 1.0), (1.0, 1.0)], [("a", 1)]),
        ([(0.0, 4.0), (10.0, 2.0), (30.0, 1.0)], [("a", 1), ("b", 6), ("c", 21)]),
        ([(0.0, 4.0), (28.0, 2.0), (30.0, 1.0)], [("a", 1), ("c", 11)]),  # b is beaten before it would lead
        ([(0.0, 3.0), (10.0, 2.0), (20.0, 1.0)], [("a", 1), ("c", 11)]),  # three lines through one point
    ],
)
def test_the_winners_are_the_lower_envelope(found, expected):
    assert sequence(*found) == expected


COSTS = st.builds(
    cost,
    st.one_of(st.just(0.0), st.floats(1e-3, 1e4)),
    st.sampled_from([1e-6, 4e-6, 1e-3, 1.5]) | st.floats(1e-7, 10.0),
)


@given(st.lists(COSTS, min_size=1, max_size=12), st.integers(1, 10**9))
def test_at_any_number_of_images_the_last_winner_so_far_has_the_least_total(found, images):
    won = winners(found)
    assert won[0].images == 1
    assert all(one.images < other.images for one, other in itertools.pairwise(won))
    last = [winner for winner in won if winner.images <= images][-1]
    least = min(one.total_seconds(images) for one in found)
    # A crossing is rounded as a quotient, but a total is rounded as a sum.
    assert last.cost.total_seconds(images) == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize(
    ("images", "text"),
    [(2, "≈ 2"), (9, "≈ 9"), (10, "≈ 10"), (57, "≈ 57"), (432, "≈ 430"), (41_234, "≈ 41,000"), (99_700, "≈ 100,000")],
)
def test_a_count_is_rounded_to_two_figures(images, text):
    assert about(images) == text


# From records

CELL = Cell(engine="clang-O1", interpreter="cpython-3.13", workload="mnist")


def found(example, interpreter="cpython-3.13", workload="mnist"):
    table = cells(example.run, example.records)
    return {one.engine: one for one in costs(table[table["workload"] == workload], interpreter)}


def test_a_cost_has_all_phases_and_the_median_time_of_a_sample(example):
    one = found(example)["clang-O1"]
    assert one.compile_seconds == pytest.approx(1.1 + 15.2)
    assert one.image_seconds == pytest.approx(1.6e-4 * 1.01 * 1.01)
    assert found(example)["tuple"].compile_seconds == 0.0


# The section


@pytest.mark.parametrize(
    "cut",
    [
        lambda example: example.only(lambda cell: False),
        lambda example: example.interrupted(0),
        lambda example: example.only(lambda cell: cell.engine in ("baseline", "tuple")),  # nothing compiles
        lambda example: example.only(lambda cell: cell.engine == "clang-O1"),  # no rival
    ],
)
def test_there_is_no_section_without_a_choice(example, cut):
    short = cut(example)
    assert break_even(cells(short.run, short.records)) is None
