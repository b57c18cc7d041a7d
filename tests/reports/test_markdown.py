"""The report and the verdicts as Markdown."""

import math
from itertools import pairwise

import pytest

from tests.reports import example_profiles
from zoomgrad.reports.pages.markdown import page
from zoomgrad.reports.profiling.profile_index import profile_index
from zoomgrad.reports.story import story
from zoomgrad.reports.text.markdown import escape
from zoomgrad.reports.verdicts import verdict_table
from zoomgrad.results.compare import COMPILE_TIME, RESULT, SPEEDUP, STEP, Verdict
from zoomgrad.results.record import Cell, PassedOver, Voucher, Vouching
from zoomgrad.results.stats.intervals import Interval


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a | b", r"a \| b"),
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
        ("[a](http://x)", r"\[a\](http://x)"),
        ("two\nlines", "two lines"),
        ("local-grads", "local-grads"),
    ],
)
def test_escape(text, escaped):
    assert escape(text) == escaped


def test_every_row_has_as_many_cells_as_its_header(full_story):
    lines = page(full_story).splitlines()
    for above, line in pairwise(lines):
        if above.startswith("|") and line.startswith("|"):
            assert above.replace(r"\|", "").count("|") == line.replace(r"\|", "").count("|")


def voucher(engine):
    return Voucher(cell=Cell(engine=engine, interpreter="cpython-3.13", workload="xor"), steps=8, worker_seconds=2.0)


def test_the_whole_text(example, golden):
    """Of the example, with its failures and profiles, on a busy machine, where one engine could not vouch."""
    busy = example.mapped(lambda record: record.model_copy(update={"other_load": 1.5}))
    passed = (PassedOver(engine="clang-O0", status="skipped", reason="there is no clang on PATH"),)
    vouching = Vouching(workload="xor", vouchers=tuple(map(voucher, ("tuple", "tcc", "gcc-O0"))), passed_over=passed)
    index = profile_index(busy.run, example_profiles.profiles())
    golden("report.md", page(story(busy.run, busy.records, index, [vouching])))


SLOWER = Verdict("tcc/x", SPEEDUP, "slower", Interval(1.25, 1.2, 1.3), then=1000.0, now=800.0, limit=0.1)
SAME = Verdict("tuple/x", SPEEDUP, "same", Interval(1.0, 0.9, 1.1), then=1.0, now=1.0, limit=0.1)
OTHERS = (
    Verdict("a/x", STEP, "unsure", Interval(1.02, 0.0, math.inf), then=0.001, now=0.001, limit=0.02),
    Verdict("b/x", COMPILE_TIME, "unsure", Interval(1, 1, 1), then=20.0, now=20.0, limit=0.5, unit="steps"),
    Verdict("c/x", RESULT, "unsure", reason="gone"),
    Verdict("d/x", RESULT, "lost", reason="<b>x</b> | y"),
)


def test_the_table_of_verdicts(golden):
    """The worst come first, and each figure has its unit."""
    sides, notes = ("baseline run", "now"), ["How to read it."]
    table = verdict_table("Gate: new", sides, (SAME, SLOWER, *OTHERS), notes, against="old")
    assert table.failed
    golden("verdicts.md", table.markdown())
    assert verdict_table("Gate: new", sides, (SAME,), notes).sentence == "Passed against baseline run: 1 same."
