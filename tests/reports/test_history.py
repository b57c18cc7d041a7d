"""Speedups from run to run: one series per machine, with changes found in the right run and no cell lost."""

import re

import pytest
from typer.testing import CliRunner

from tests.reports.another import SLOW_MACHINE, another, stored
from zoomgrad.harness.cli import command_line
from zoomgrad.harness.cli.console import out
from zoomgrad.reports.measured.races import race
from zoomgrad.reports.pages import html, markdown
from zoomgrad.reports.sections.history import history


@pytest.fixture(scope="module")
def small(example):
    """A run whose table is quick to make."""
    return example.only(lambda cell: cell.workload == "mnist" and cell.interpreter != "pypy-3.9")


@pytest.fixture(scope="module")
def twice(small):
    """A history of five runs, in which `tuple` becomes twice as fast with the fourth, and three of another machine."""
    here = [another(small, day, tuple=0.5 if day >= 4 else 1.0) for day in range(1, 6)]
    there = [another(small, day, SLOW_MACHINE, seconds=20.0) for day in range(6, 9)]
    return past(*here, *there)


def past(*examples, left_out=()):
    return history([race(one.run, one.records) for one in examples], left_out)


def rows(told):
    return [tuple(figure.text for figure in row) for row in told.sheet.rows]


def test_another_machines_runs_are_a_separate_series(small):
    """On the other machine `tuple` is three times as fast, but no run of either machine changed anything."""
    runs = [
        another(small, day, *((SLOW_MACHINE, 1.0) if day % 2 else ()), tuple=1 / 3 if day % 2 else 1)
        for day in range(1, 9)
    ]
    told = past(*runs)
    assert {(*row[3:5], row[7]) for row in rows(told)} == {("1", "4", "1.00×"), ("2", "4", "1.00×")}
    assert {"machine 1: Other CPU", "machine 2: Example CPU"} <= set(told.sheet.notes)
    assert told.chart["machine"].nunique() == 1
    assert sorted(set(told.chart["place"])) == [0, 1, 2, 3]


def test_the_table_states_the_facts_and_escapes_hostile_text(twice, small):
    told = past(*(another(small, day) for day in (1, 2)), left_out=[f"broken is left out: {small.nasty}"])
    assert html.history_page(told).count("<script") == 1
    assert "<script" not in markdown.history_page(told)
    page = html.history_page(twice)
    for said in ("8 runs of 2 machines, 2025-11-22 10:45 UTC", "Other CPU", "Largest change"):
        assert said in page
    assert "| tuple | cpython-3.13 | mnist | 1 | 5 | 1.27× | 2.55× | 2.00× |" in markdown.history_page(twice)


# The command


@pytest.fixture
def zoomgrad(monkeypatch):
    """`zoomgrad(*arguments)` runs `history` in a wide terminal and returns its result."""
    monkeypatch.setattr(out, "_width", 200)
    return lambda *arguments: CliRunner().invoke(command_line, ["history", *map(str, arguments)])


def test_a_folder_of_runs_becomes_a_table_and_a_chart(small, tmp_path, zoomgrad):
    for day in range(1, 6):
        stored(another(small, day, tuple=0.5 if day >= 4 else 1.0), tmp_path)
    result = zoomgrad(tmp_path)
    assert result.exit_code == 0, result.output
    assert re.search(r"tuple +cpython-3.13 +mnist +1 +5 +1.27× +2.55× +2.00×", result.output)
    assert result.output.splitlines()[-1].endswith("history.html")
    assert "<svg" in (tmp_path / "history.html").read_text(encoding="utf-8")
    assert (tmp_path / "history.md").read_text(encoding="utf-8").startswith("5 runs of 1 machine")
    assert zoomgrad(tmp_path).exit_code == 0, "the pages in the folder were taken for runs"


def test_unusable_folders_are_named_and_skipped(small, tmp_path, zoomgrad):
    runs = [another(small, day) for day in (1, 2)]
    for run in runs:
        stored(run, tmp_path)
    stored(runs[0], tmp_path / "elsewhere").rename(tmp_path / "copy")
    stored(another(small, 3).only(lambda cell: cell.engine != "baseline"), tmp_path)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "run.json").write_text("{", encoding="utf-8")
    (tmp_path / "half" / "records").mkdir(parents=True)
    result = zoomgrad(tmp_path)
    assert result.exit_code == 0, result.output
    for said in (
        "zoomgrad: copy is left out: the same run as 2025-11-22T104500",
        "zoomgrad: 2025-11-24T104500 is left out: it has no speedup. A speedup needs baseline",
        "zoomgrad: cut is left out: ",
        "zoomgrad: half is left out: ",
    ):
        assert said in result.output
    assert "elsewhere" not in result.output
    assert "2 runs of 1 machine" in (tmp_path / "history.md").read_text(encoding="utf-8")
