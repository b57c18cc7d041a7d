"""The chart of speedups: intervals, missing figures, and engines without identical bits."""

import re

import pytest
from matplotlib.figure import Figure

from reports.charts import charts
from reports.charts.drawing import dots, style
from reports.charts.drawing.svg import drawing
from reports.measured.table import cells


def rows(example, workload="mnist"):
    table = cells(example.run, example.records)
    return table[table["workload"] == workload]


def drawn(name, table):
    return drawing(name, charts()[name], table)


def fillings(table, row, *, hollow):
    """Return the fill colours of the shapes that form a mark."""
    axes = Figure().subplots()
    dots.mark(axes, table, row, 1.0, 1.0, hollow=hollow, text="")
    return [line.get_markerfacecolor() for line in axes.lines]


def test_a_hollow_mark_is_transparent(example):
    table = rows(example)
    row = next(table.itertuples(index=False))
    assert set(fillings(table, row, hollow=True)) == {"none"}
    assert fillings(table, row, hollow=False) == [style.engine_colour(row.engine)]


def test_speedups_with_too_few_processes_are_labelled_no_interval(example):
    few = example.mapped(lambda record: record if record.block == 0 else None)
    assert ">no interval<" in drawn("speedups", rows(few)).svg
    assert "All 4 engines are faster than baseline" in drawn("speedups", rows(few)).title
    assert ">no interval<" not in drawn("speedups", rows(example)).svg


def test_a_speedup_that_may_be_noise_is_not_counted(example):
    noisy = example.mapped(
        lambda record: (
            record.model_copy(update={"step_seconds": (1.0 + record.block, 1.1 + record.block)})
            if record.cell.engine == "tuple" and record.status == "measured"
            else record
        )
    )
    assert drawn("speedups", rows(noisy)).title.startswith("3 of 4 engines are faster than baseline on cpython-3.13")


@pytest.mark.parametrize(
    ("engines", "title"),
    [
        (("baseline", "tuple"), "tuple is 1.3 times as fast as baseline on cpython-3.13"),
        (("baseline",), "No engine was measured alongside baseline on any interpreter"),
        (("tuple", "clang-O1"), "No engine was measured alongside baseline on any interpreter"),
        ((), "No engine was measured alongside baseline on any interpreter"),
    ],
)
def test_a_title_is_correct_for_few_engines(example, engines, title):
    drawing = drawn("speedups", rows(example.only(lambda cell: cell.engine in engines)))
    assert drawing.title == title
    assert ("No engine was measured alongside" in drawing.svg) == title.startswith("No engine")


def test_slower_engines_do_not_count_as_faster(example):
    slow = example.mapped(
        lambda record: (
            record.model_copy(update={"step_seconds": (9.0, 9.1, 9.2)})
            if record.cell.engine != "baseline" and record.status == "measured"
            else record
        )
    )
    assert drawn("speedups", rows(slow)).title == "No engine is measurably faster than baseline on cpython-3.13"


def test_one_faster_engine_of_several_is_named(example):
    slow = example.mapped(
        lambda record: (
            record.model_copy(update={"step_seconds": (9.0, 9.1, 9.2)})
            if record.cell.engine not in ("baseline", "tuple") and record.status == "measured"
            else record
        )
    )
    assert drawn("speedups", rows(slow)).title == (
        "1 of 4 engines is faster than baseline on cpython-3.13: tuple, 1.3 times"
    )


def test_an_engine_without_identical_bits_shows_its_bound(example):
    svg = drawn("speedups", rows(example)).svg
    assert svg.count(">within 1e-06<") == 1
    assert svg.count(">identical bits<") == 0


def test_every_interpreter_with_a_mark_has_its_shape_in_the_legend(example):
    svg = drawn("speedups", rows(example)).svg
    assert ">cpython-3.11<" in svg
    assert ">cpython-3.13<" in svg
    assert ">pypy-3.9<" not in svg  # skipped


def test_rows_are_as_high_as_their_interpreters_need(example):
    one = rows(example.only(lambda cell: cell.interpreter == "cpython-3.13"))
    both = rows(example)
    assert dots.size(both[both["status"] == "measured"])[1] > dots.size(one)[1]


def test_rows_follow_the_order_of_the_ladder(example):
    svg = drawn("speedups", rows(example)).svg
    names = [name for name in re.findall(r">([a-zA-Z0-9-]+)</text>", svg) if name in example.run.engines]
    assert names == list(example.run.engines)[1:]
