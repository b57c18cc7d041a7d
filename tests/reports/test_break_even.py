"""Break-even: which engine has the least total time after how many images, as arithmetic and in the report."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zoomgrad.reports.break_even import NEVER, Cost, overtakes, winners


def cost(compile_seconds, sample_seconds, engine="one"):
    return Cost(engine, compile_seconds, sample_seconds)


@pytest.mark.parametrize(
    ("one", "other", "images"),
    [
        ((10.0, 1.0), (0.0, 2.0), 11),  # after 10 both have taken 20 s
        ((0.5, 1.0), (0.0, 2.0), 1),  # ahead before the first image is done
        ((0.0, 1.0), (0.0, 2.0), 1),  # neither compiles
        ((1.0, 1.0), (2.0, 1.0), 1),  # parallel lines
        ((1.0, 1.0), (1.0, 1.0), NEVER),  # equal
        ((1e300, 1.0), (0.0, 1.0 + 1e-15), NEVER),  # more images than a number can count
    ],
)
def test_an_engine_overtakes_another_once_it_stays_ahead(one, other, images):
    assert overtakes(cost(*one), cost(*other)) == images


COSTS = st.builds(
    cost,
    st.one_of(st.just(0.0), st.floats(1e-3, 1e4)),
    st.sampled_from([1e-6, 4e-6, 1e-3, 1.5]) | st.floats(1e-7, 10.0),
)


@given(st.lists(COSTS, min_size=1, max_size=12), st.integers(1, 10**9))
def test_at_any_number_of_images_the_last_winner_so_far_has_the_least_total(found, images):
    won = winners(found)
    assert won[0].samples == 1
    assert all(one.samples < other.samples for one, other in itertools.pairwise(won))
    last = [winner for winner in won if winner.samples <= images][-1]
    least = min(one.total_seconds(images) for one in found)
    # A crossing is rounded as a quotient, but a total is rounded as a sum.
    assert last.cost.total_seconds(images) == pytest.approx(least, rel=1e-9)
