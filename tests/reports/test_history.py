"""Speedups from run to run: one series per machine, with changes found in the right run and no cell lost."""

import re

import pytest
from typer.testing import CliRunner

from zoomgrad.harness.cli import command_line
from zoomgrad.harness.cli.console import out
from zoomgrad.reports.measured.races import race
from zoomgrad.reports.pages import html, markdown
from zoomgrad.reports.sections.history import history

OTHER = "Other CPU"


@pytest.fixture(scope="module")
def small(example):
    """A run whose table is quick to make."""
    return example.only(lambda cell: cell.workload == "mnist" and cell.interpreter != "pypy-3.9")


def past(*examples, left_out=()):
    return history([race(one.run, one.records) for one in examples], left_out)


def test_another_machines_runs_are_a_separate_series(small):
    """On the other machine `tuple` is three times as fast, but no run of either machine changed anything."""
    runs = [small.later(day, OTHER, tuple=1 / 3) if day % 2 else small.later(day) for day in range(1, 9)]
    told = past(*runs)
    rows = [tuple(figure.text for figure in row) for row in told.sheet.rows]
    assert {(*row[3:5], row[7]) for row in rows} == {("1", "4", "1.00×"), ("2", "4", "1.00×")}
    assert {"machine 1: Other CPU", "machine 2: Example CPU"} <= set(told.sheet.notes)
    assert told.chart["machine"].nunique() == 1
    assert sorted(set(told.chart["place"])) == [0, 1, 2, 3]


def test_the_pages_state_the_largest_change_and_escape_hostile_text(small):
    """A history of five runs, in which `tuple` becomes twice as fast with the fourth, and three of another machine."""
    here = [small.later(day, tuple=0.5 if day >= 4 else 1.0) for day in range(1, 6)]
    there = [small.later(day, OTHER, seconds=20.0) for day in range(6, 9)]
    told = past(*here, *there, left_out=[f"broken is left out: {small.nasty}"])
    page, short = html.history_page(told), markdown.history_page(told)
    for said in ("8 runs of 2 machines, 2025-11-22 10:45 UTC", OTHER, "Largest change"):
        assert said in page
    assert "| tuple | cpython-3.13 | mnist | 1 | 5 | 1.27× | 2.55× | 2.00× |" in short
    assert (page.count("<script"), short.count("<script")) == (1, 0)


def test_a_folder_of_runs_becomes_pages_and_unusable_folders_are_named(small, tmp_path, monkeypatch):
    monkeypatch.setattr(out, "_width", 200)
    runs = [small.later(day, tuple=0.5 if day >= 4 else 1.0) for day in range(1, 6)]
    for run in runs:
        run.stored(tmp_path)
    runs[0].stored(tmp_path / "elsewhere").folder.rename(tmp_path / "copy")
    small.later(6).only(lambda cell: cell.engine != "baseline").stored(tmp_path)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "run.json").write_text("{", encoding="utf-8")
    (tmp_path / "half" / "records").mkdir(parents=True)
    for _ in range(2):  # the pages in the folder are not taken for runs
        result = CliRunner().invoke(command_line, ["history", str(tmp_path)])
        assert result.exit_code == 0, result.output
    left_out = re.findall(r"zoomgrad: (\S+) is left out: (.*)", result.output)
    assert sorted(name for name, _ in left_out) == ["2025-11-27T104500", "copy", "cut", "half"]
    assert dict(left_out)["copy"].startswith("the same run as 2025-11-22T104500")
    assert re.search(r"tuple +cpython-3.13 +mnist +1 +5 +1.27× +2.55× +2.00×", result.output)
    assert result.output.splitlines()[-1].endswith("history.html")
    assert "<svg" in (tmp_path / "history.html").read_text(encoding="utf-8")
    assert (tmp_path / "history.md").read_text(encoding="utf-8").startswith("5 runs of 1 machine")
