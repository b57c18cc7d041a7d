"""Parsing of Scalene's profile, and Scalene itself."""

import pytest

from zoomgrad.harness.profile import scalene
from zoomgrad.results.places import ROOT
from zoomgrad.results.profile import LineProfile

WORK = f"{ROOT}/harness/worker/profile.py exercise:86;"


def test_stacks_begin_with_the_work_and_mark_time_in_c():
    content = {
        "stacks": [
            [["<frozen runpy> _run_code:88;", WORK, "/a/b.py Value.f:12;"], {"python_time": 0.5, "c_time": 0.25}],
            [["/a/b.py <module>:1;"], {"python_time": 0.0, "c_time": 0.125}],
        ]
    }
    assert list(scalene.folded(content)) == [
        ("exercise (profile.py:86);Value.f (b.py:12)", 0.5),
        ("exercise (profile.py:86);Value.f (b.py:12);C", 0.25),
        ("<module> (b.py:1);C", 0.125),
    ]


@pytest.mark.alone
def test_a_real_scalene(session):
    content = scalene.profile(session("scalene", "tuple", "digits", seconds=3.0))
    profile = LineProfile.model_validate({**session.common, **content})
    assert profile.tool.startswith("Scalene 2")
    assert profile.steps >= 1
    assert 0.8 < profile.python + profile.native + profile.system <= 1.01
    hottest = max(profile.lines, key=lambda line: line.cpu)
    assert hottest.file.startswith("engines/")
    assert hottest.source == (ROOT / hottest.file).read_text().splitlines()[hottest.line - 1].strip()
    assert sum(line.allocated_bytes for line in profile.lines) > 2**20
    page = (session.folder / "scalene.html").read_text(encoding="utf-8", errors="replace")
    assert page.lstrip().lower().startswith("<!doctype html") or "<html" in page[:2000]
    assert "ScalarTrainer.train" in (session.folder / "scalene.folded").read_text()
