"""Three significant digits and a unit."""

import math

import pytest

from zoomgrad.results import units

NAN = math.nan


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.duration, {9.81e-6: "9.81 µs", 9.999e-4: "1.00 ms", 107: "107 s", 300: "5.00 min", 86_400: "24.0 h"}),
        (units.duration, {0: "0 s", 59.96e-9: "60.0 ns", NAN: "–", math.inf: "∞"}),
        (units.significant, {9.996: "10.0", 0.001234: "0.00123", 145_213: "145,000", 0: "0", -1.5: "-1.50"}),
        (units.size, {0: "0 B", 512: "512 B", 1000: "1.00 kB", 5.9e9: "5.90 GB", NAN: "–"}),
        (units.error, {0.0: "0", 1.23e-11: "1.2e-11", math.inf: "∞"}),
        (units.times, {3.414: "3.4 times"}),
    ],
)
def test_a_figure_as_text(text, expected):
    assert {number: text(number) for number in expected} == expected


def test_the_suffix_of_a_name_gives_its_unit():
    names = ("worker_seconds", "peak_bytes", "nodes", "looped_share")
    assert [units.by_name(name, 2e6) for name in names] == ["556 h", "2.00 MB", "2,000,000", "200000000.00 %"]


def test_no_interval_is_a_dash():
    assert units.duration_interval(NAN, NAN) == units.ABSENT
    assert (units.count(1, "cell"), units.count(60_000, "step")) == ("1 cell", "60,000 steps")
