"""Profiles are validated and survive a round trip through JSON."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from zoomgrad.results.profile import PARTS, AnatomyProfile, MemoryPoint, MemoryProfile
from zoomgrad.results.record import Cell

COMMON = {
    "cell": Cell(engine="tuple", interpreter="cpython-3.13", workload="xor"),
    "status": "measured",
    "started_at": datetime(2026, 1, 15, tzinfo=UTC),
}
SECONDS = dict(zip(PARTS, (3.0, 1.0, 2.0, 1.0, 0.5, 0.5, 1.5, 0.5), strict=True))


def anatomy(**fields):
    values = {"parts": SECONDS, "step_seconds": 10.0, "plain_step_seconds": 8.0, **fields}
    return AnatomyProfile(**COMMON, **values)


def memory(*points, warm_up_seconds=1.0):
    made = tuple(MemoryPoint(seconds=seconds, resident_bytes=resident) for seconds, resident in points)
    return MemoryProfile(**COMMON, warm_up_seconds=warm_up_seconds, points=made)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"step_seconds": 10.1}, "parts add up to 10 s, but the step takes 10.1 s"),
        ({"parts": {"build": 10.0}}, "parts must be build, forward, order"),
        ({"parts": {}, "step_seconds": 0.0}, "not none"),
        ({"parts": dict.fromkeys(PARTS, 0.0), "step_seconds": 0.0}, "parts add up to 0 s"),
    ],
)
def test_parts_that_do_not_add_up_are_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        anatomy(**fields)


def test_a_floor_covers_a_third_of_the_time_after_the_warm_up_and_a_part_is_a_share():
    saw = memory((0.0, 1), (1.0, 30), (1.5, 20), (2.5, 90), (4.5, 40), (6.5, 35), (7.0, 80))
    assert [saw.floor_bytes(third) for third in range(3)] == [20, 40, 35]
    assert memory((0.0, 1), (0.5, 2)).floor_bytes(2) is None
    assert memory().floor_bytes(0) is None
    assert anatomy().part("build", "forward") == pytest.approx(0.4)
