"""Classification of hand-made run sequences."""

import math
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zoomgrad.results.stats.steady import MIN_VALUES, Steady, classify, of_processes

few = settings(max_examples=25, deadline=None)


def noisy(levels, spread=0.01, seed=3):
    rng = random.Random(seed)
    return [level * math.exp(rng.gauss(0, spread)) for level in levels]


SETTLED = {
    "flat": ([1.0] * 20, "flat", 0),
    "a constant": ([1.0] * 30, "flat", 0),
    "warm-up": ([2.5, 2.0, 1.5, 1.2] + [1.0] * 16, "warm-up", 4),
    "a slow first value": ([3.0] + [1.0] * 19, "warm-up", 2),
    "half of it warm-up": ([1.5] * 10 + [1.0] * 10, "warm-up", 10),
    "slow-down": ([1.0] * 10 + [1.5] * 10, "slow-down", 10),
    "warm-up, then slow-down": ([3.0] * 5 + [1.0] * 5 + [1.5] * 20, "slow-down", 10),
    "an outlier": ([1.0] * 9 + [4.0] + [1.0] * 10, "flat", 0),
    "an outlier after a warm-up": ([2.0] * 4 + [1.0] * 9 + [4.0] + [1.0] * 10, "warm-up", 4),
    "a disturbed start": ([1.0] * 3 + [2.0] * 3 + [1.0] * 20, "warm-up", 6),
}
UNSETTLED = {
    "a late change": ([1.0] * 18 + [2.0] * 2, "no steady state"),
    "keeps falling": ([3 * 0.9**i for i in range(40)], "no steady state"),
    "slower and slower": ([1.1**i for i in range(40)], "no steady state"),
    "back and forth, but slowly": (([1.0] * 5 + [1.5] * 5) * 2, "no steady state"),
    "alternating": ([1.0, 1.5] * 10, "cyclic"),
    "a pause every fifth value": ([1.0, 1.0, 1.0, 1.0, 8.0] * 4, "cyclic"),
    "waves": ([1 + 0.3 * math.sin(i * math.pi / 4) for i in range(40)], "cyclic"),
    "back and forth, often": (([1.0] * 5 + [1.5] * 5) * 4, "cyclic"),
    "a warm-up, then alternating": ([4.0] * 4 + [1.0, 1.5] * 12, "cyclic"),
}


@pytest.mark.parametrize("name", SETTLED)
@pytest.mark.parametrize("spread", [0.0, 0.01])
def test_a_sequence_that_settles(name, spread):
    levels, kind, start = SETTLED[name]
    assert classify(noisy(levels, spread)) == Steady(kind, start)


@pytest.mark.parametrize("name", UNSETTLED)
@pytest.mark.parametrize("spread", [0.0, 0.01])
def test_a_sequence_that_does_not_settle(name, spread):
    levels, kind = UNSETTLED[name]
    found = classify(noisy(levels, spread))
    assert found == Steady(kind)
    assert not found.settled


@pytest.mark.parametrize("values", [[], [1.0], [2.0, 1.0], [5.0, 3.0, 1.0, 1.0, 1.0], [1.0] * (MIN_VALUES - 1)])
def test_few_values_are_too_short(values):
    assert classify(values) == Steady("too short")


def test_a_change_below_one_per_cent_does_not_count():
    assert classify([1.0] * 10 + [1.005] * 10) == Steady("flat", 0)


@pytest.mark.parametrize("spread", [0.003, 0.03, 0.1])
@pytest.mark.parametrize("count", [MIN_VALUES, 20])
def test_noise_is_flat(spread, count):
    """Seeded: at most 3 of 50 flat sequences seem to change."""
    sequences = (noisy([1.0] * count, spread, seed) for seed in range(50))
    assert sum(classify(values).kind == "flat" for values in sequences) >= 47


@given(st.sampled_from([*SETTLED, *UNSETTLED]), st.sampled_from([2.0**-20, 0.5, 1024.0]))
@few
def test_a_change_of_unit_does_not_change_the_kind(name, factor):
    values = noisy({**SETTLED, **UNSETTLED}[name][0])
    assert classify([factor * value for value in values]) == classify(values)


@given(st.lists(st.floats(min_value=1e-7, max_value=1e3), max_size=40))
@few
def test_the_start_is_always_the_index_of_a_value(values):
    found = classify(values)
    assert found.settled == (found.kind in ("flat", "warm-up", "slow-down"))
    if found.start is not None:
        assert 0 <= found.start < len(values)


def test_a_cell_settles_when_its_last_process_does():
    assert of_processes([Steady("flat", 0), Steady("warm-up", 4), Steady("warm-up", 2)]) == Steady("warm-up", 4)
    assert of_processes([Steady("flat", 0)] * 3) == Steady("flat", 0)


def test_a_cell_does_not_settle_if_most_of_its_processes_do_not():
    flat, restless = Steady("flat", 0), Steady("no steady state")
    assert of_processes([flat] * 2 + [restless] * 3) == restless
    assert of_processes([flat] * 3 + [restless] * 2) == flat
    assert of_processes([Steady("cyclic"), flat]) == Steady("cyclic")
    assert of_processes([]) == Steady("too short")


def test_a_short_sequence_does_not_import_scipy():
    """SciPy takes most of a second to import."""
    code = "import sys, results.stats.steady as s; s.classify([1.0, 2.0]); print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
