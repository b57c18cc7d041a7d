"""Change points are found where a series changes its level, and nowhere else."""

import math
import random

import pytest

from zoomgrad.results.stats.changepoints import LEAST_NOISE, UNKNOWN_NOISE, Level, levels, spread
from zoomgrad.results.stats.intervals import Interval

NAN = float("nan")


def series(*values, width=0.0):
    return [Interval(value, value * math.exp(-width), value * math.exp(width)) for value in values]


def bare(*values):
    """Return a series of runs that had too few processes for an interval."""
    return [Interval(value, NAN, NAN) for value in values]


@pytest.mark.parametrize(
    ("values", "begins"),
    [
        ([], []),
        ([3.0], [0]),
        ([3.0, 3.02], [0]),
        ([3.0, 6.0], [0, 1]),
        ([3.0, 3.0, 3.0, 6.0], [0, 3]),
        ([3.0, 3.1, 2.95, 6.0, 6.1, 5.9, 2.0, 2.05], [0, 3, 6]),
        ([3.0, 3.0, 3.0, 3.0, 9.0, 3.0, 3.0, 3.0], [0, 4, 5]),
    ],
)
def test_a_level_begins_where_it_changed(values, begins):
    assert [one.begin for one in levels(bare(*values), 0.03)] == begins


def test_levels_follow_one_another_and_are_geometric_means():
    assert levels(bare(1.0, 1.0, 4.0, 4.0), 0.05) == [Level(0, 2, 1.0), Level(2, 4, pytest.approx(4.0))]


def test_variation_within_the_noise_is_not_a_change():
    assert len(levels(bare(1.0, 1.3, 1.0, 1.3), 0.3)) == 1


def test_random_noise_rarely_starts_a_new_level():
    rng = random.Random(1337)
    many = ([math.exp(rng.gauss(0, 0.05)) for _ in range(12)] for _ in range(200))
    assert sum(len(levels(bare(*values), 0.05)) > 1 for values in many) <= 4


def test_noise_of_many_runs_is_estimated_from_neighbours():
    rng = random.Random(7)
    values = [(10.0 if index > 30 else 1.0) * math.exp(rng.gauss(0, 0.1)) for index in range(60)]
    assert spread(bare(*values)) == pytest.approx(0.1, rel=0.3)


def test_noise_of_few_runs_is_estimated_from_their_intervals():
    assert spread(series(1.0, 9.0, width=1.96 * 0.2)) == pytest.approx(0.2)
    assert spread(bare(1.0, 9.0)) == UNKNOWN_NOISE


def test_identical_runs_have_the_minimum_noise():
    assert spread(bare(*[2.0] * 8)) == LEAST_NOISE
