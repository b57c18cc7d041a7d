"""Printing and drawing of a Value graph."""

import os
import shutil

import pytest

import engines
from engines.api import Unavailable
from engines.graph import draw
from engines.graph.draw import draw_dot
from engines.graph.show import show


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


def test_without_dot_a_notebook_shows_text(monkeypatch):
    monkeypatch.setattr(draw, "which", lambda name: None)
    drawing = draw_dot(example())
    with pytest.raises(Unavailable, match="Install Graphviz"):
        drawing.svg()
    assert drawing._repr_mimebundle_() == {"text/plain": str(drawing)}


@pytest.mark.skipif(os.name != "posix", reason="the fake `dot` is a shell script, which needs POSIX")
@pytest.mark.parametrize("text", ["exit 1", "exec sleep 1000", "kill -SEGV $$"])
def test_if_dot_misbehaves_a_notebook_shows_text(tmp_path, monkeypatch, text):
    program = tmp_path / "dot"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr(draw, "RENDER_SECONDS", 0.5)
    drawing = draw_dot(example())
    with pytest.raises(Unavailable, match="Graphviz could not draw"):
        drawing.svg()
    assert drawing._repr_mimebundle_() == {"text/plain": str(drawing)}
