"""Compile time against epoch time: the Pareto front and its chart."""

import re

import pandas as pd
import pytest

from reports.charts import charts
from reports.charts.drawing.svg import drawing
from reports.measured.table import cells
from reports.measured.trade_off import front, traded

RACE = {"none": (0.0, 100.0), "slower": (0.0, 120.0), "tcc": (1.0, 5.0), "late": (2.0, 5.0), "clang": (30.0, 1.0)}
"""Engine -> compile seconds and epoch seconds."""


@pytest.fixture
def race():
    return pd.DataFrame(
        [(name, *seconds) for name, seconds in RACE.items()], columns=["engine", "compile_seconds", "epoch_seconds"]
    )


def rows(example, workload="mnist"):
    table = cells(example.run, example.records)
    return table[table["workload"] == workload]


def test_the_front_holds_the_engines_that_no_other_beats(race):
    assert list(front(race)["engine"]) == ["none", "tcc", "clang"]
    assert list(front(race.iloc[::-1])["engine"]) == ["none", "tcc", "clang"]


def test_a_single_row_is_the_front(race):
    assert list(front(race.iloc[:1])["engine"]) == ["none"]


def test_only_rows_with_known_times_are_in_the_trade_off(example):
    assert set(traded(rows(example))["interpreter"]) == {"cpython-3.11", "cpython-3.13"}
    assert traded(rows(example.interrupted(0))).empty


def test_compile_time_has_an_interval_from_three_blocks_on(example):
    (cell,) = (one for one in example.run.cells if one.key == "clang-O1/cpython-3.13/mnist")

    def compiled(*seconds):
        records = [example.measured(cell, block, phases={"compile": one}) for block, one in enumerate(seconds)]
        changed = example.with_records(cell, *records)
        found = rows(changed)
        return found[(found["engine"] == "clang-O1") & (found["interpreter"] == "cpython-3.13")].iloc[0]

    three = compiled(10.0, 11.0, 12.0)
    assert three.compile_seconds == 11.0
    assert three.compile_seconds_low < 10.5 < 11.5 < three.compile_seconds_high
    two = compiled(10.0, 12.0)
    assert two.compile_seconds == 11.0
    assert two.compile_seconds_low != two.compile_seconds_low  # NaN
    nothing = rows(example)[rows(example)["engine"] == "tuple"].iloc[1]
    assert nothing.compile_seconds == 0.0
    assert nothing.compile_seconds_low != nothing.compile_seconds_low


def test_bars_show_compile_time_and_its_phases(example):
    chart = charts()["compile_phases"]
    svg = drawing("chart", chart, rows(example)).svg
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", svg)
    assert texts.index("trace") < texts.index("lower") < texts.index("generate") < texts.index("compile")
    assert "15.2 s" in texts
    assert "16.3 s (16.3 s to 16.3 s)" in texts


def test_there_are_no_bars_if_nothing_was_compiled(example):
    plain = example.only(lambda cell: cell.engine in ("baseline", "tuple"))
    drawn = drawing("chart", charts()["compile_phases"], rows(plain))
    assert (drawn.title, "Nothing was compiled." in drawn.svg) == ("Nothing was compiled", True)
