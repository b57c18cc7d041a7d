"""Broken charts in the folder: the report leaves them out with a warning."""

import importlib

import pytest

from zoomgrad import reports
from zoomgrad.reports.charts import Chart, charts
from zoomgrad.reports.discovery import defining
from zoomgrad.reports.pages import html
from zoomgrad.reports.story import story


@pytest.fixture
def example_story(example):
    return story(example.run, example.records)


WHOLE = "ORDER = 1\nSUBJECT = 'headline'\ntitle = caption = size = draw = lambda *_: None\n"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("def (", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import sys; sys.exit()", "SystemExit"),
        ("def draw(): pass", "AttributeError: it has no ORDER and no SUBJECT and no caption"),
    ],
)
def test_a_broken_file_is_left_out_with_a_warning(tmp_path, monkeypatch, text, what):
    package = f"probe_{abs(hash(tmp_path))}"
    (tmp_path / package).mkdir()
    for name, content in (("__init__", ""), ("whole", WHOLE), ("helper", "x = 1"), ("broken", text)):
        (tmp_path / package / f"{name}.py").write_text(content)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    with pytest.warns(UserWarning, match=rf"{package}/broken\.py is left out: {what}"):
        found = defining(Chart, "draw", package, [str(tmp_path / package)])
    assert list(found) == ["whole"]


def test_charts_are_found_in_any_folder_and_broken_ones_are_left_out(tmp_path, monkeypatch):
    folder = tmp_path / "dropped"
    folder.mkdir()
    (tmp_path / "alone.py").write_text(WHOLE)
    for name, content in (("__init__", ""), ("whole", WHOLE), ("helper", "x = 1"), ("broken", "1 / 0")):
        (folder / f"{name}.py").write_text(content)
    of_the_project = charts()
    monkeypatch.setattr(reports.charts, "__path__", [*reports.charts.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    with pytest.warns(UserWarning, match=r"reports/charts/dropped/broken\.py is left out: ZeroDivisionError"):
        found = charts()
    assert found.keys() - of_the_project.keys() == {"alone", "whole"}


def test_a_chart_that_cannot_be_drawn_does_not_affect_the_others(example_story, monkeypatch):
    whole = html.drawings(example_story)
    broken = charts()[whole[0].name]
    monkeypatch.setattr(broken, "draw", lambda table, axes: 1 / 0)
    with pytest.warns(UserWarning, match=f"chart {whole[0].name} is left out: ZeroDivisionError"):
        drawn = html.drawings(example_story)
    assert [drawing.name for drawing in drawn] == [drawing.name for drawing in whole[1:]]
