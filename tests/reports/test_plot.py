"""Charts: labels cover nothing, axes have ticks, names stay text, and the same rows give the same bytes."""

import itertools
import re
import xml.etree.ElementTree as ET

import pytest

from zoomgrad.reports.build import charts
from zoomgrad.reports.plot import LETTER, Plot, Scale, counts, times

NAME = re.compile(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)" class="name [^"]*">([^<]+)<')


def labels(svg):
    """Yield the boxes of the labels beside marks: text, left, right and baseline."""
    for x, y, anchor, text in NAME.findall(str(svg)):
        left = float(x) - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * LETTER * len(text)
        yield text, left, left + LETTER * len(text), float(y)


@pytest.fixture(scope="module")
def drawn(full_story):
    """The charts of a run with many engines, by name."""
    return dict(charts(full_story))


@pytest.mark.parametrize("name", ["compile_against_epoch", "total_time"])
def test_leading_engines_are_labelled_and_labels_do_not_overlap(drawn, name):
    found = list(labels(drawn[name].svg))
    assert "rerolled-machine-sparse" in {text for text, *_ in found}
    for one, other in itertools.combinations(found, 2):
        apart = one[2] <= other[1] or other[2] <= one[1] or abs(one[3] - other[3]) >= 12
        assert apart, (one, other)


@pytest.mark.parametrize("others", [(), ((4.5, 5.0),)])
def test_a_label_avoids_marks_and_lines(others):
    plot = Plot(Scale(0, 10, (), "x", log=False), Scale(0, 10, (), "y", log=False))
    plot.line((plot.place(5, 5), plot.place(10, 5)), "front")
    plot.mark(plot.place(5, 5), "on", name="leader")
    for other in others:
        plot.mark(plot.place(*other), "on")
    ((_, _, right, baseline),) = labels(plot.drawn("a", "b").svg)
    if others:
        assert abs(baseline - 4 - plot.y.at(5)) > 6, "it is beside its mark, on the other one or the line"
    else:
        assert right < plot.x.at(5), "it is on the line to the right of its mark"


@pytest.mark.parametrize(
    ("scale", "ticks"),
    [
        (times(0.05, 20.0, ""), ["100\u00a0ms", "1\u00a0s", "10\u00a0s"]),
        (times(30.0, 50_000.0, ""), ["1\u00a0min", "10\u00a0min", "1\u00a0h", "10\u00a0h"]),
        (times(1.2, 1.9, ""), ["1.30\u00a0s"]),
        (counts(0.8, 1.25, "", "{:g}×".format), ["0.89×", "1×"]),
        (counts(1, 1e7, "", "{:,.0f}".format), ["1", "100", "10,000", "1,000,000"]),
    ],
)
def test_an_axis_has_round_ticks_within_its_range(scale, ticks):
    assert [text for _, text in scale.ticks][: len(ticks)] == ticks
    assert all(scale.low <= value <= scale.high for value, _ in scale.ticks)
    assert scale.at(scale.low) == 0
    assert scale.at(scale.high) == 1


def test_names_are_not_parsed_as_tags():
    plot = Plot(times(0.1, 10.0, "<x>"), times(0.1, 10.0, "y"))
    plot.mark(plot.place(1, 1), "on", 'a "<b>&', "<i>a$b$</i>")
    svg = str(plot.drawn("one", '"><script>').svg)
    assert "&lt;i&gt;a$b$&lt;/i&gt;" in svg
    assert not re.search("<(i|b|x|script)>", svg)
    ET.fromstring(svg)
