"""Three significant digits and a unit."""

import math

import pytest

from results import units

NAN = math.nan


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.42, "1.42 s"),
        (0.31, "310 ms"),
        (9.81e-6, "9.81 µs"),
        (9.999e-4, "1.00 ms"),
        (59.96e-9, "60.0 ns"),
        (107, "107 s"),
        (300, "5.00 min"),
        (86_400, "24.0 h"),
        (86_400 * 100, "2,400 h"),
        (0, "0 s"),
        (NAN, "–"),
        (math.inf, "∞"),
    ],
)
def test_duration(seconds, text):
    assert units.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(9.996, "10.0"), (0.001234, "0.00123"), (145_213, "145,000"), (310, "310"), (0, "0"), (-1.5, "-1.50")],
)
def test_significant(value, text):
    assert units.significant(value) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (512, "512 B"), (1000, "1.00 kB"), (5.9e9, "5.90 GB"), (NAN, "–")]
)
def test_size(count, text):
    assert units.size(count) == text


def test_the_suffix_of_a_name_gives_its_unit():
    assert units.by_name("worker_seconds", 0.5) == "500 ms"
    assert units.by_name("peak_bytes", 2e6) == "2.00 MB"
    assert units.by_name("nodes", 79_510) == "79,500"


def test_no_interval_is_a_dash():
    assert units.duration_interval(NAN, NAN) == units.ratio_interval(NAN, NAN) == units.ABSENT
    assert units.ratio_interval(3.3, 3.5) == "3.30× to 3.50×"


def test_prose():
    assert units.times(3.414) == "3.4 times"
    assert (units.count(1, "cell"), units.count(60_000, "step")) == ("1 cell", "60,000 steps")
    assert (units.error(0.0), units.error(1.23e-11), units.error(math.inf)) == ("0", "1.2e-11", "∞")
