"""The results that a terminal prints: every cell once, the headline's workload last."""

import pandas as pd
import pytest

from zoomgrad.reports.text.printed import HEADINGS, printed
from zoomgrad.reports.view import view

ROW = {
    "interpreter": "cpython-3.13",
    "workload": "xor",
    "status": "measured",
    "compile_seconds": 0.0,
    "step_seconds": 1e-3,
    "step_seconds_low": 0.9e-3,
    "step_seconds_high": 1.1e-3,
    "speedup": 1.0,
}


def table_of(*rows):
    made = pd.DataFrame([{**ROW, **row} for row in rows])
    for key in ("engine", "interpreter", "workload"):
        made[key] = pd.Categorical(made[key], categories=list(dict.fromkeys(made[key])), ordered=True)
    return made


def texts(sheet):
    return [tuple(figure.text for figure in row) for row in sheet.rows]


def test_a_sheet_has_compile_time_and_interval():
    tcc = {"engine": "tcc", "compile_seconds": 0.25, "speedup": float("nan")}
    (sheet,) = printed(table_of({"engine": "baseline"}, tcc), None)
    assert (sheet.title, sheet.headings) == ("xor on cpython-3.13", HEADINGS)
    assert texts(sheet) == [
        ("baseline", "nothing", "1.00 ms", "900 µs to 1.10 ms", "1.00×"),
        ("tcc", "250 ms", "1.00 ms", "900 µs to 1.10 ms", ""),
    ]


def test_engines_without_a_result_are_notes():
    absent = [
        {"engine": name, "status": status} for name, status in (("a", "skipped"), ("b", "timed-out"), ("c", "skipped"))
    ]
    (sheet,) = printed(table_of(*absent), None)
    assert (sheet.rows, sheet.notes) == ((), ("skipped: a, c", "timed out: b"))


@pytest.mark.parametrize("last", ["xor", "moons"])
def test_the_headlines_workload_and_the_best_covered_interpreter_come_last(last):
    pypy = {"engine": "baseline", "interpreter": "pypy-3.9"}
    table = table_of(
        {"engine": "baseline"},
        {"engine": "tcc"},
        pypy,
        {"engine": "baseline", "workload": "moons"},
    )
    titles = [sheet.title for sheet in printed(table, last)]
    assert len(titles) == 3
    assert titles[-1] == f"{last} on cpython-3.13"
    assert titles.index("xor on pypy-3.9") < titles.index("xor on cpython-3.13")


def test_every_cell_of_a_run_is_printed_once(example):
    found = view(example.run, example.records)
    named = []
    for sheet in printed(found.table, found.headline_workload):
        workload, _, interpreter = sheet.title.partition(" on ")
        engines = [row[0] for row in texts(sheet)] + [
            name for note in sheet.notes for name in note.partition(": ")[2].split(", ")
        ]
        named += [f"{engine}/{workload}/{interpreter}" for engine in engines]
    cells = [f"{cell.engine}/{cell.workload}/{cell.interpreter}" for cell in example.run.cells]
    assert sorted(named) == sorted(cells)
