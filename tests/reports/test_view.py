"""The view of a run: each result is computed once, so it is the same wherever it is shown."""

import re
from pathlib import Path

import pandas as pd

from reports.measured.table import cells
from reports.view import view

REPORTS = Path(__file__).parents[2] / "reports"


def test_a_view_has_the_outcomes_the_table_and_the_headline(example):
    found = view(example.run, example.records)
    assert list(found.outcomes) == list(example.run.cells)
    assert {one.status for one in found.outcomes.values()} == set(found.table["status"])
    pd.testing.assert_frame_equal(found.table, cells(example.run, example.records))
    assert found.headline_workload == found.headline.workload == "mnist"
    assert set(found.headline_rows["workload"]) == {"mnist"}


def test_a_run_without_blocks_has_no_outcomes(example):
    found = view(example.run.model_copy(update={"blocks": 0}), ())
    assert (found.outcomes, len(found.table), found.headline) == ({}, 0, None)


def test_only_the_view_computes_a_headline():
    call = re.compile(r"(?<!def )\b(headline|headline_workload)\(")
    callers = {path.name for path in REPORTS.rglob("*.py") if call.search(path.read_text(encoding="utf-8"))}
    assert callers == {"view.py"}
