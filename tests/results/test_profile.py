"""Profiles are validated."""

import pytest
from pydantic import ValidationError

from tests.reports.example_profiles import cell, made
from zoomgrad.results.profile import PARTS, AnatomyProfile

SECONDS = dict(zip(PARTS, (3.0, 1.0, 2.0, 1.0, 0.5, 0.5, 1.5, 0.5), strict=True))


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
        made(AnatomyProfile, cell("tuple"), **{"parts": SECONDS, "step_seconds": 10.0, **fields})
