"""Statistics by their properties: nothing here times anything."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from results.stats import (
    BOOTSTRAP_PROCESSES,
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
few = settings(max_examples=40, deadline=None)


def scaled(runs, factor):
    return [[value * factor for value in values] for values in runs]


def test_the_process_is_the_unit_not_the_value():
    assert median_of_processes([[1.0] * 100, [2.0], [3.0]]) == 2.0


def test_a_pause_every_fifth_step_is_part_of_the_price():
    """What an epoch costs is the mean of its steps: a median would hide four fifths of the collector's work."""
    assert median_of_processes([[20.0, 20.0, 20.0, 20.0, 170.0]] * 3) == 50.0


@given(samples)
@few
def test_a_time_lies_within_its_interval(runs):
    interval = step_time(runs)
    assert 0 < interval.low <= interval.value <= interval.high


@given(st.lists(st.lists(seconds, min_size=1, max_size=6), min_size=BOOTSTRAP_PROCESSES, max_size=8))
@few
def test_a_bootstrap_does_not_leave_the_values(runs):
    interval = step_time(runs)
    values = [value for process in runs for value in process]
    assert min(values) <= interval.low <= interval.high <= max(values)
    assert min(values) <= interval.value <= max(values)


@given(samples, st.sampled_from([2.0**-10, 0.5, 2.0, 2.0**10]))
@few
def test_a_change_of_unit_scales_a_time_and_its_interval(runs, factor):
    plain, other = step_time(runs), step_time(scaled(runs, factor))
    assert other.value == pytest.approx(plain.value * factor)
    assert other.low == pytest.approx(plain.low * factor)
    assert other.high == pytest.approx(plain.high * factor)


@given(samples, samples, st.sampled_from([2.0**-10, 2.0, 2.0**10]))
@few
def test_a_change_of_unit_leaves_a_speedup_alone(base, engine, factor):
    plain, other = speedup(base, engine), speedup(scaled(base, factor), scaled(engine, factor))
    assert other.value == pytest.approx(plain.value)
    assert other.low == pytest.approx(plain.low)
    assert other.high == pytest.approx(plain.high)


@given(samples, samples)
@few
def test_turning_a_speedup_round_inverts_it(base, engine):
    assert speedup(base, engine).value * speedup(engine, base).value == pytest.approx(1.0)


def test_turning_a_speedup_round_inverts_its_interval():
    base = [[2.0 + i / 10 + j / 100 for j in range(5)] for i in range(8)]
    engine = [[1.0 + i / 20 + j / 100 for j in range(5)] for i in range(8)]
    there, back = speedup(base, engine), speedup(engine, base)
    # Two bootstraps draw different samples; their bounds agree to the resampling error.
    assert there.low == pytest.approx(1 / back.high, rel=0.05)
    assert there.high == pytest.approx(1 / back.low, rel=0.05)


@given(samples.flatmap(lambda runs: st.tuples(st.just(runs), st.permutations(runs))), st.randoms(use_true_random=False))
@few
def test_the_order_of_processes_and_values_does_not_matter_to_a_median(pair, random):
    runs, shuffled = pair
    shuffled = [random.sample(values, len(values)) for values in shuffled]
    assert median_of_processes(shuffled) == median_of_processes(runs)


@given(samples)
@few
def test_the_same_samples_give_the_same_interval(runs):
    assert step_time(runs) == step_time(runs)


def test_more_confidence_is_a_wider_interval():
    runs = [[1.0 + i / 10] for i in range(10)]
    assert step_time(runs, confidence=0.99).relative_width >= step_time(runs, confidence=0.5).relative_width > 0


@pytest.mark.parametrize("count", range(MIN_PROCESSES))
def test_an_interval_needs_enough_processes(count):
    enough = [[1.0]] * MIN_PROCESSES
    with pytest.raises(TooFewProcesses):
        step_time([[1.0]] * count)
    for base, engine in (([[1.0]] * count, enough), (enough, [[1.0]] * count)):
        with pytest.raises(TooFewProcesses):
            speedup(base, engine)


@pytest.mark.parametrize("runs", [[], [[]], [[1.0], []]])
def test_a_median_needs_values(runs):
    with pytest.raises(TooFewProcesses):
        median_of_processes(runs)


def test_identical_samples_have_an_interval_of_no_width():
    interval = speedup([[2.0] * 3] * 3, [[1.0] * 3] * 3)
    assert (interval.low, interval.value, interval.high) == (2.0, 2.0, 2.0)
    assert math.isclose(interval.relative_width, 0.0)


def test_below_five_processes_the_interval_is_students():
    """exp(±t s/√n) with t = 4.303, the 97.5 % quantile for two degrees of freedom, by any table."""
    step = math.log(1.05)
    interval = step_time([[math.exp(-step)], [1.0], [math.exp(step)]])
    assert interval.value == pytest.approx(1.0)
    assert interval.high == pytest.approx(math.exp(4.3027 * step / math.sqrt(3)), rel=1e-4)
    assert interval.low == pytest.approx(1 / interval.high)


@pytest.mark.parametrize("processes", [3, 4, 5, 10])
def test_intervals_cover_the_truth(processes):
    """Simulated processes 5 % apart, values 1 %: about 95 of 100 intervals hold the true time."""
    rng = random.Random(7)

    def covered():
        means = [math.exp(rng.gauss(0, 0.05)) for _ in range(processes)]
        interval = step_time([[mean * math.exp(rng.gauss(0, 0.01)) for _ in range(3)] for mean in means])
        return interval.low <= 1.0 <= interval.high

    assert sum(covered() for _ in range(300)) >= 0.92 * 300


# What became of a figure

positive = st.floats(min_value=1e-3, max_value=1e3)
intervals = st.tuples(positive, st.floats(1.0, 3.0), st.floats(1.0, 3.0)).map(
    lambda drawn: Interval(drawn[0], drawn[0] / drawn[1], drawn[0] * drawn[2])
)


@given(intervals, intervals)
@few
def test_a_change_back_is_the_inverse(new, old):
    there, back = change(new, old), change(old, new)
    assert there.value * back.value == pytest.approx(1)
    assert there.low * back.high == pytest.approx(1)
    assert there.high * back.low == pytest.approx(1)


@given(intervals, intervals, st.sampled_from([0.5, 2.0, 1024.0]))
@few
def test_a_change_of_unit_leaves_a_change_alone(new, old, factor):
    def scaled_interval(one):
        return Interval(*(factor * bound for bound in (one.value, one.low, one.high)))

    plain, other = change(new, old), change(scaled_interval(new), scaled_interval(old))
    assert (other.value, other.low, other.high) == pytest.approx((plain.value, plain.low, plain.high))


@given(intervals, intervals)
@few
def test_a_change_is_less_sure_than_what_changed(new, old):
    found = change(new, old)
    assert found.low <= found.value <= found.high
    widest = max(math.log(one.high / one.low) for one in (new, old))
    assert math.log(found.high / found.low) >= widest / math.sqrt(2) - 1e-9


def test_a_change_of_something_exact_has_the_others_interval():
    assert change(Interval(4.0, 2.0, 6.0), Interval(2.0, 2.0, 2.0)) == Interval(
        2.0, pytest.approx(1.0), pytest.approx(3.0)
    )


def test_a_change_without_intervals_has_none():
    found = change(Interval(4.0, math.nan, math.nan), Interval(2.0, 1.0, 3.0))
    assert found.value == 2.0
    assert math.isnan(found.low)
    assert math.isnan(found.high)
