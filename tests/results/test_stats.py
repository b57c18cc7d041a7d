"""Properties of the statistics, on generated samples: no test here times anything."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.studies.coverage import SCENARIOS, covered, of_speedup
from zoomgrad.results.stats.intervals import (
    MIN_PROCESSES,
    Interval,
    TooFewProcesses,
    change,
    median_of_processes,
    speedup,
    step_time,
)

seconds = st.floats(min_value=1e-6, max_value=1e3)
samples = st.lists(st.lists(seconds, min_size=1, max_size=6), min_size=MIN_PROCESSES, max_size=6)
pairs = st.lists(st.tuples(*[st.lists(seconds, min_size=1, max_size=4)] * 2), min_size=MIN_PROCESSES, max_size=8)
few = settings(max_examples=40, deadline=None)


def scaled(runs, factor):
    return [[value * factor for value in values] for values in runs]


def test_the_process_is_the_unit_not_the_value():
    assert median_of_processes([[1.0] * 100, [2.0], [3.0]]) == 2.0


def test_a_pause_every_fifth_step_counts():
    """An epoch costs the mean of its steps; a median would hide four fifths of the collector's work."""
    assert median_of_processes([[20.0, 20.0, 20.0, 20.0, 170.0]] * 3) == 50.0


@given(st.lists(st.lists(seconds, min_size=1, max_size=6), min_size=6, max_size=12))
@few
def test_from_six_processes_on_an_interval_stays_within_the_values(runs):
    interval = step_time(runs)
    values = [value for process in runs for value in process]
    assert min(values) * (1 - 1e-12) <= interval.low <= interval.high <= max(values) * (1 + 1e-12)


def inverse(there, back):
    """Whether one ratio and its bounds are those of the other one upside down."""
    products = (there.value * back.value, there.low * back.high, there.high * back.low)
    return products == pytest.approx((1, 1, 1))


@given(samples, st.sampled_from([2.0**-10, 0.5, 2.0, 2.0**10]))
@few
def test_a_change_of_unit_scales_a_time_and_its_interval(runs, factor):
    plain, other = step_time(runs), step_time(scaled(runs, factor))
    assert 0 < plain.low <= plain.value <= plain.high
    expected = (plain.value * factor, plain.low * factor, plain.high * factor)
    assert (other.value, other.low, other.high) == pytest.approx(expected)


@given(pairs, st.randoms(use_true_random=False))
@few
def test_a_speedup_does_not_depend_on_order_and_swapping_the_sides_inverts_it(blocks, random):
    base, engine = zip(*blocks, strict=True)
    there = speedup(base, engine)
    assert 0 < there.low <= there.value <= there.high
    assert inverse(there, speedup(engine, base))
    shuffled = [[random.sample(side, len(side)) for side in block] for block in random.sample(blocks, len(blocks))]
    assert speedup(*zip(*shuffled, strict=True)) == there


@given(pairs, st.lists(seconds, min_size=8, max_size=8))
@few
def test_slowing_whole_blocks_does_not_change_the_interval(blocks, drift):
    base, engine = zip(*blocks, strict=True)
    slowed = speedup(
        *([[drift[at] * value for value in run] for at, run in enumerate(side)] for side in (base, engine))
    )
    plain = speedup(base, engine)
    # An interval is widened to include the value, a ratio of medians that may come from different blocks.
    if plain.low < plain.value < plain.high and slowed.low < slowed.value < slowed.high:
        assert (slowed.low, slowed.high) == pytest.approx((plain.low, plain.high))


@pytest.mark.parametrize("count", range(MIN_PROCESSES))
def test_an_interval_needs_enough_processes(count):
    enough = [[1.0]] * MIN_PROCESSES
    with pytest.raises(TooFewProcesses):
        step_time([[1.0]] * count)
    for base, engine in (([[1.0]] * count, enough), (enough, [[1.0]] * count)):
        with pytest.raises(TooFewProcesses):
            speedup(base, engine)


def test_below_five_processes_the_interval_is_students():
    """exp(±t s/√n) with t = 4.303, the tabulated 97.5 % quantile for two degrees of freedom."""
    step = math.log(1.05)
    interval = step_time([[math.exp(-step)], [1.0], [math.exp(step)]])
    assert interval.value == pytest.approx(1.0)
    assert interval.high == pytest.approx(math.exp(4.3027 * step / math.sqrt(3)), rel=1e-4)
    assert interval.low == pytest.approx(1 / interval.high)


def test_the_interval_of_five_processes_is_slightly_wider_than_their_range():
    """By hand: the extremes cover 0.9375 and the next pair 0.625, so I = -0.04 and 4 I / (1 + 3 I) = -2/11."""
    interval = step_time([[math.exp(step)] for step in (-2, -1, 0, 1, 2)])
    assert math.log(interval.low) == pytest.approx(-2 - 2 / 11)
    assert math.log(interval.high) == pytest.approx(2 + 2 / 11)


def test_the_bounds_of_ten_processes_are_between_order_statistics():
    """Bounds are between the second and third value from either end (Hettmansperger and Sheather's formula)."""
    interval = step_time([[math.exp(step)] for step in range(10)])
    assert 1 < math.log(interval.low) == pytest.approx(1.6577, abs=1e-4)
    assert 8 > math.log(interval.high) == pytest.approx(7.3423, abs=1e-4)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("processes", [5, 20])
def test_intervals_cover_the_truth(scenario, processes):
    """docs/trust.md: 93 to 97 of 100 simulated intervals hold the true speedup in every scenario."""
    assert 93 <= covered(of_speedup, scenario, processes) <= 97


# Changes

positive = st.floats(min_value=1e-3, max_value=1e3)
intervals = st.tuples(positive, st.floats(1.0, 3.0), st.floats(1.0, 3.0)).map(
    lambda drawn: Interval(drawn[0], drawn[0] / drawn[1], drawn[0] * drawn[2])
)


@given(intervals, intervals)
@few
def test_a_change_is_less_certain_than_its_figures_and_back_it_is_the_inverse(new, old):
    found = change(new, old)
    assert found.low <= found.value <= found.high
    assert inverse(found, change(old, new))
    widest = max(math.log(one.high / one.low) for one in (new, old))
    assert math.log(found.high / found.low) >= widest / math.sqrt(2) - 1e-9
