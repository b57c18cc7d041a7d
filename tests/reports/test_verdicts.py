"""Verdicts -> the table, as text."""

import math

from zoomgrad.reports.verdicts import verdict_table
from zoomgrad.results.compare import COMPILE_TIME, RESULT, SPEEDUP, STEP, Verdict
from zoomgrad.results.stats.intervals import Interval

SLOWER = Verdict("tcc/x", SPEEDUP, "slower", Interval(1.25, 1.2, 1.3), then=1000.0, now=800.0, limit=0.1)


def table(*verdicts):
    return verdict_table("Gate: new", ("baseline run", "now"), verdicts, ["How to read it."], against="old")


def test_failing_verdicts_come_first():
    same = Verdict("tuple/x", SPEEDUP, "same", Interval(1.0, 0.9, 1.1), then=1.0, now=1.0, limit=0.1)
    made = table(same, SLOWER)
    assert made.failed
    assert made.sentence == "FAILED against old: 1 slower, 1 same."
    slower, other = made.rows
    assert slower == ("SLOWER", "tcc/x", "speedup", "1,000×", "800×", "+25.0 % (+20.0 % to +30.0 %)", "+10 %")
    assert other[:2] == ("same", "tuple/x")
    assert table(same).sentence == "Passed against old: 1 same."


def test_each_figure_has_its_unit():
    rows = (
        Verdict("a", STEP, "unsure", Interval(1.02, 0.0, math.inf), then=0.001, now=0.001, limit=0.02),
        Verdict("b", COMPILE_TIME, "unsure", Interval(1, 1, 1), then=20.0, now=20.0, limit=0.5, unit="steps"),
        Verdict("c", RESULT, "unsure", reason="gone"),
    )
    assert [(row[3], row[5]) for row in table(*rows).rows] == [
        ("1.00 ms", "+2.0 %, no interval"),
        ("20.00 steps", "+0.0 %"),
        ("", "gone"),
    ]


def test_the_page_escapes_a_reason():
    text = table(Verdict("a", RESULT, "lost", reason="<b>x</b> | y")).markdown()
    assert "&lt;b&gt;x&lt;/b&gt; \\| y" in text
    assert "<b>" not in text
    assert "\n| LOST | a | result |  |  | &lt;b&gt;" in text
    assert text.endswith("How to read it.\n\n")
