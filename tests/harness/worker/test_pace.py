"""The machine's pace around values."""

from harness.worker.pace import around, pace


def test_each_value_has_the_pace_before_and_after_it():
    assert around([1.0, 3.0, 5.0]) == [2.0, 4.0]
    assert around([1.0]) == []


def test_a_pace_is_a_time():
    assert pace() > 0
