"""Sequences within processes: values in the order in which they were taken."""

import pytest

from zoomgrad.reports.charts import charts
from zoomgrad.reports.charts.drawing.svg import drawing
from zoomgrad.reports.measured.sequences import values
from zoomgrad.reports.measured.table import cells


def mnist(example):
    table = cells(example.run, example.records)
    return table[table["workload"] == "mnist"]


def runs(example):
    return values(mnist(example), example.records)


def of(found, engine, interpreter="cpython-3.13"):
    return found[(found["engine"] == engine) & (found["interpreter"] == interpreter)]


def drawn(name, found):
    return drawing(name, charts()[name], found)


def jit(example):
    """Return the run with a working PyPy, and warm-up values: four on PyPy and one on CPython."""

    def change(record):
        if record.cell.interpreter != "pypy-3.9":
            warm = record.step_seconds[:1]
            return record.model_copy(update={"warmup_step_seconds": warm}) if warm else record
        return example.measured(record.cell, record.block, warmup_step_seconds=(2.5, 1.5, 0.9, 0.6))

    return example.mapped(change)


def test_a_sequence_is_relative_to_the_time_of_a_step(example):
    found = of(runs(jit(example)), "tuple")
    assert list(found["number"]) == [1, 2, 3, 4]
    assert list(found["warm_up"]) == [True, False, False, False]
    assert list(found["relative"]) == pytest.approx([1 / 1.01, 1 / 1.01, 1.0, 1.02 / 1.01])


def test_only_one_interpreter_without_a_jit_is_shown(example):
    assert set(runs(jit(example))["interpreter"]) == {"cpython-3.13", "pypy-3.9"}
    away = jit(example.only(lambda cell: cell.interpreter != "cpython-3.13"))
    assert set(runs(away)["interpreter"]) == {"cpython-3.11", "pypy-3.9"}


def test_processes_with_fewer_values_are_left_out(example):
    slow = jit(example).mapped(
        lambda record: (
            example.measured(record.cell, 2, step_seconds=record.step_seconds[:1])
            if record.block == 2 and record.status == "measured"
            else record
        )
    )
    assert len(of(runs(slow), "tuple")) == 4
    single = slow.mapped(lambda record: record if record.block == 2 else None)
    assert runs(single).empty
    assert "No sequence of values was recorded." in drawn("warm_up", runs(single)).svg


def test_a_warm_up_chart_names_the_slowest_start(example):
    chart = drawn("warm_up", runs(jit(example)))
    title = chart.title
    assert all((f">{word}<" in chart.svg) for word in ("warm-up", "tuple"))
    assert not any(f">{word}<" in drawn("warm_up", runs(example)).svg for word in ("warm-up", "tuple"))
    # All engines have the same four warm-up values, so they are worst relative to the fastest engine.
    assert title.startswith("rerolled-clang-fast on pypy-3.9 starts slowest: its first value takes ")
    assert drawn("warm_up", runs(example)).title == (
        "No cell starts slowly: values are 0.990× to 1.01× the cell's time of a step"
    )
