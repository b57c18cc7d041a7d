"""Printing and drawing of a Value graph."""

import os
import shutil

import pytest

from tests.engines.test_asking import script
from zoomgrad import engines
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.graph.draw import draw_dot, show

pytestmark = pytest.mark.host


def example():
    Value = engines.load("tuple").Value
    a, b = Value(-4.0, label="a"), Value(2.0)
    c = (a * b + b**3).relu()
    c.label = 'c | {"out"}'
    c.backward()
    return c


def test_text(golden):
    golden("graph.txt", "\n".join(show(example())) + "\n")


def test_dot(golden):
    golden("graph.dot", draw_dot(example()))


def test_svg():
    if shutil.which("dot") is None:
        pytest.skip("Graphviz's `dot` is not installed: apt install graphviz")
    picture = draw_dot(example()).svg()
    assert "</svg>" in picture
    assert picture.count("data ") == 6
    assert draw_dot(example())._repr_mimebundle_()["image/svg+xml"] == picture


def long_sum(count):
    value = engines.load("tuple").Value
    return sum((value(float(i)) for i in range(count)), value(0.0))


def test_a_large_graph_is_laid_out_quickly_and_a_huge_one_refused():
    assert "nslimit" not in draw_dot(long_sum(100))
    large, huge = draw_dot(long_sum(400)), draw_dot(long_sum(2_000))
    assert "nslimit=0.1" in large
    with pytest.raises(Unavailable, match=r"4,001 Values is too large") as refusal:
        huge.svg()
    assert "text or DOT" in refusal.value.remedy
    assert huge._repr_mimebundle_() == {"text/plain": str(huge)}


@pytest.mark.skipif(os.name != "posix", reason="the fake `dot` is a shell script, which needs POSIX")
def test_if_dot_fails_a_notebook_shows_text(tmp_path, monkeypatch):
    script(tmp_path / "dot", "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    drawing = draw_dot(example())
    with pytest.raises(Unavailable, match="Graphviz could not draw"):
        drawing.svg()
    assert drawing._repr_mimebundle_() == {"text/plain": str(drawing)}
