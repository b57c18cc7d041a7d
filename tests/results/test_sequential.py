"""Confidence sequences: their wealth against its integral, their error while blocks are added."""

import math
import random

import pytest
from scipy.integrate import quad

from zoomgrad.results.stats.sequential import bounds, rank, wealth_reaches


@pytest.mark.parametrize(("count", "below"), [(1, 0), (7, 2), (14, 0), (30, 9), (30, 20)])
def test_the_wealth_is_that_of_all_bets_from_even_odds_to_certainty(count, below):
    above = count - below
    won, _ = quad(lambda p: 2 * (2 * p) ** above * (2 * (1 - p)) ** below, 0.5, 1.0)
    assert wealth_reaches(count, below, won * (1 - 1e-9))
    assert not wealth_reaches(count, below, won * (1 + 1e-9))


def test_fourteen_blocks_that_agree_are_enough_for_one_in_a_thousand():
    values = [0.01 + 0.001 * n for n in range(14)]
    assert bounds(values, 0.001) == (values[0], values[-1])
    assert bounds(values[:13], 0.001) == (-math.inf, math.inf)


def test_looking_after_every_block_keeps_the_stated_error():
    """A fifth of ordinary 95 % intervals would exclude the truth at some time within 100 blocks."""
    rng, wrong = random.Random(7), 0
    for _ in range(2000):
        below = count = 0
        while count < 100:
            count += 1
            below += rng.random() < 0.5
            place = rank(count, 0.05)
            if place is not None and min(below, count - below) <= place:
                wrong += 1
                break
    assert 0.005 < wrong / 2000 < 0.05


def test_a_run_of_two_thousand_blocks_has_a_bound():
    assert rank(2000, 0.001) > 800
