"""A figure that is looked at again and again errs no more often than it says: a small part of `tests.studies.looks`."""

import pytest

from tests.studies.looks import AT, BLOCKS, OF_A_LOOK, SCENARIOS, SHARED, failures, missed
from zoomgrad.results.precision import MOST_BLOCKS
from zoomgrad.results.stats.intervals import ERROR


@pytest.mark.parametrize("scenario", ["equal spread, 3 %", "1 process in 10 disturbed"])
def test_a_run_until_a_precision_keeps_its_error(scenario):
    wrong, _ = missed(SCENARIOS[scenario], 0.04, AT, OF_A_LOOK, trials=150)
    assert wrong <= 0.06


def test_looking_after_every_block_would_not():
    """Otherwise the simulation would show nothing."""
    every = range(BLOCKS, MOST_BLOCKS + 1)
    wrong, _ = missed(SCENARIOS["equal spread, 3 %"], 0.02, every, ERROR, trials=150)
    assert wrong > 0.08


def test_a_run_of_equal_code_rarely_fails():
    pair = SCENARIOS["spread 6 %"]
    # With a limit of 10 %, hardly any rule would fail.
    assert failures(pair, 0.0, SHARED, runs=60, limit=0.02) <= 1 / 60
    assert failures(pair, 0.0, 1.0, runs=60, limit=0.02) > 1 / 30
    assert failures(pair, 0.5, SHARED, runs=5) == 1
