"""A figure that is looked at again and again errs no more often than it says: a small part of `tests.studies.looks`."""

from tests.studies.looks import SCENARIOS, SHARED, failures


def test_a_run_of_equal_code_rarely_fails():
    pair = SCENARIOS["spread 6 %"]
    # With a limit of 10 %, hardly any rule would fail.
    assert failures(pair, 0.0, SHARED, runs=60, limit=0.02) <= 1 / 60
    assert failures(pair, 0.0, 1.0, runs=60, limit=0.02) > 1 / 30
    assert failures(pair, 0.5, SHARED, runs=5) == 1
