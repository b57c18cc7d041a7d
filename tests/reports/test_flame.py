"""Flame graphs: frames are merged, widths add up, and names are escaped."""

import xml.etree.ElementTree as ET
from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reports.example_profiles import STACKS
from zoomgrad.reports.profiling.flame_graph import WIDTH, flame
from zoomgrad.reports.profiling.stacks import folded

SVG = "{http://www.w3.org/2000/svg}"


def frames(svg):
    """Yield the tooltip and rectangle of each frame."""
    root = ET.fromstring(svg)
    for group in root.iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        yield group.findtext(f"{SVG}title"), *(float(rect.get(key)) for key in ("x", "y", "width"))


def test_stacks_are_read_line_by_line():
    assert folded("a;b c 1.5\n\na 2\na 1e3\n") == {"a;b c": 1.5, "a": 1002.0}


@pytest.mark.parametrize("text", ["a;b", "a x", "a nan", "a inf", "main 1e999", "a -1", "3;"])
def test_a_line_without_a_count_is_refused(text):
    with pytest.raises(ValueError, match="no count at the end"):
        folded(text)


def test_hostile_names_are_escaped():
    svg = flame(folded(STACKS), "<script>")
    assert "<script" not in svg
    assert any(title.startswith("<script>alert(1)</script>: 15.7 %") for title, *_ in frames(svg))


@pytest.mark.parametrize("name", ["\x00\x1b", "\ud800", "]]>", "&amp;", "a" * 5_000])
def test_any_name_can_be_drawn(name):
    ET.fromstring(flame({name: 1.0}, name).encode("utf-8"))


names = st.text("abc.py:;<&_ ", min_size=1, max_size=12)


@given(st.dictionaries(names, st.floats(0.0, 1e6), max_size=30))
def test_widths_add_up(stacks):
    rows = defaultdict(list)
    for _, x, y, width in frames(flame(stacks, "x")):
        rows[y].append((x, width))
    for found in rows.values():
        found.sort()
        assert sum(width for _, width in found) <= WIDTH + 0.01 * len(found)
        for (left, width), (right, _) in pairwise(found):
            assert left + width <= right + 0.02
    if rows:
        assert rows[min(rows)] == [(0.0, WIDTH)]
