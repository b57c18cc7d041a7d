"""Flame graphs: frames are merged, widths add up, and names are escaped."""

import xml.etree.ElementTree as ET
from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.pages.flame_graph import NARROWEST, WIDTH, boxes, flame, folded, kind
from tests.reports.example_profiles import STACKS

SVG = "{http://www.w3.org/2000/svg}"


def frames(svg):
    """Yield the tooltip and rectangle of each frame."""
    root = ET.fromstring(svg)
    for group in root.iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        yield group.findtext(f"{SVG}title"), *(float(rect.get(key)) for key in ("x", "y", "width"))


def test_stacks_are_read_line_by_line():
    assert folded("a;b c 1.5\n\na 2\na 1e3\n") == {"a;b c": 1.5, "a": 1002.0}


@pytest.mark.parametrize("text", ["a;b", "a x", "a nan", "a inf", "a -1", "3;"])
def test_a_line_without_a_count_is_refused(text):
    with pytest.raises(ValueError, match="no count at the end"):
        folded(text)


def test_frames_of_the_same_name_and_caller_are_merged():
    found = {(box.name, box.depth): (box.left, box.share) for box in boxes({"a;b": 1.0, "a;c": 2.0, "a;b;d": 1.0})}
    assert found == {
        ("all", 0): (0.0, 1.0),
        ("a", 1): (0.0, 1.0),
        ("b", 2): (0.0, 0.5),
        ("d", 3): (0.0, 0.25),
        ("c", 2): (0.5, 0.5),
    }


def test_a_frame_that_is_too_narrow_is_left_out():
    found = {box.name: box.share for box in boxes({"a;narrow": NARROWEST / 2, "a": 1 - NARROWEST / 2})}
    assert found == {"all": 1.0, "a": pytest.approx(1.0)}


def test_a_stack_may_be_deep():
    assert len(boxes({";".join(f"f{n}" for n in range(5_000)): 1.0})) == 5_001


def test_a_flame_graph_is_a_standalone_file():
    root = ET.fromstring(flame(folded(STACKS), "baseline <on> & more"))
    assert root.get("role") == "img"
    assert root.get("aria-label") == "baseline <on> & more"
    assert root.get("viewBox").startswith(f"0 0 {WIDTH:g} ")
    assert root.get("width") is None
    assert {element.tag for element in root.iter()} == {
        f"{SVG}{name}" for name in ("svg", "title", "style", "text", "rect", "g")
    }


def test_hostile_names_are_escaped():
    svg = flame(folded(STACKS), "<script>")
    assert "<script" not in svg
    assert any(title.startswith("<script>alert(1)</script>: 15.7 %") for title, *_ in frames(svg))


@pytest.mark.parametrize("name", ["\x00\x1b", "\ud800", "]]>", "&amp;", "a" * 5_000])
def test_any_name_can_be_drawn(name):
    ET.fromstring(flame({name: 1.0}, name).encode("utf-8"))


@pytest.mark.parametrize("stacks", [{}, {"a": 0.0}])
def test_an_empty_flame_graph_says_no_samples(stacks):
    assert "No samples." in flame(stacks, "empty")


def test_the_order_of_stacks_does_not_change_a_byte():
    stacks = folded(STACKS)
    assert flame(stacks, "x") == flame(dict(reversed(stacks.items())), "x")


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        ("Value.__init__ (baseline.py:25)", "Python"),
        ("trainer.py:train", "Python"),
        ("gc_collect_main", "garbage collector"),
        ("func_traverse", "garbage collector"),
        ("visit_decref", "garbage collector"),
        ("_PyEval_EvalFrameDefault", "native"),
        ("C", "native"),
    ],
)
def test_the_kind_of_a_frame(name, whose):
    assert kind(name) == whose


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


def test_infinite_counts_are_refused():
    """The sum would be infinite, and every share of it NaN."""
    with pytest.raises(ValueError, match="no count"):
        folded("main 1e999")
