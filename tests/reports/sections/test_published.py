"""The published table beside a run's own figures for the same engines."""

import math

import pytest

from reports.measured.table import cells
from reports.sections.published import PUBLISHED, counterparts, published


def table_of(example):
    return cells(example.run, example.records)


def found(table):
    """Return the counterparts by engine, interpreter and workload."""
    return {(one.engine, one.interpreter, one.workload): one for one in counterparts(table)}


def line(table, engine, interpreter, workload="mnist"):
    """Return the figures of one line of the section by heading."""
    sheet = next(sheet for sheet in published(table).sheets if sheet.title == workload)
    row = next(row for row in sheet.rows if (row[1].text, row[2].text) == (engine, interpreter))
    return dict(zip(sheet.headings, row, strict=True))


def test_the_published_figures_are_copied_correctly():
    assert [(row.name, row.compile_seconds, row.epoch_seconds) for row in PUBLISHED] == [
        ("Interpreted", 0.0, 60_000.0),
        ("TCC", 0.5, 45.0),
        ("Clang -O0", 30.0, 30.0),
        ("Clang -O1", 350.0, 8.0),
    ]


def test_every_row_has_its_counterpart_on_every_interpreter_and_workload(crowded_table):
    engines = ("baseline", "tcc", "clang-O0", "clang-O1", "clang-O1-whole")
    hosts = ("cpython-3.14", "pypy-3.11")
    assert list(found(crowded_table)) == [
        (engine, host, workload) for workload in ("mnist", "mnist-b1000") for engine in engines for host in hosts
    ]


def test_a_counterpart_has_the_measured_figures(crowded_table):
    one = found(crowded_table)["clang-O1", "cpython-3.14", "mnist"]
    assert one.row.name == "Clang -O1"
    assert one.compile_seconds == pytest.approx(0.02 + 81e-6 * 159_500)
    assert one.image_seconds == pytest.approx(158e-6 * 1.01 * 1.01)
    assert one.epoch_seconds == pytest.approx(60_000 * one.image_seconds)
    assert one.speedup == pytest.approx(1_450_000 / 158)
    assert (one.bits, one.status, one.extrapolated) == ("identical", "measured", True)


def test_the_whole_form_is_beside_the_split_form_and_labelled(crowded_table):
    shown = line(crowded_table, "clang-O1-whole", "cpython-3.14")
    assert (shown["published"].text, shown["engine"].below) == ("Clang -O1", "one function per pass")
    assert published(crowded_table).sheets[0].notes == tuple(
        f"clang-O1 (split) compiles 9.9 times as fast as clang-O1-whole (one function per pass) on {host}."
        for host in ("cpython-3.14", "pypy-3.11")
    )


@pytest.fixture(scope="module")
def as_published(crowded):
    """The crowded run with the published form of two engines, one of which takes 20 times as long to compile."""
    forms = {"tcc": ("tcc-published", 1.0), "clang-O1": ("clang-O1-published", 20.0)}

    def form_of(record):
        name, slower = forms[record.cell.engine]
        phases = {phase: slower * seconds for phase, seconds in record.phases.items()}
        return record.model_copy(update={"cell": of(record.cell, name), "phases": phases})

    def of(cell, engine):
        return cell.model_copy(update={"engine": engine})

    more = [of(cell, forms[cell.engine][0]) for cell in crowded.run.cells if cell.engine in forms]
    records = [form_of(record) for record in crowded.records if record.cell.engine in forms]
    return cells(crowded.run.model_copy(update={"cells": (*crowded.run.cells, *more)}), [*crowded.records, *records])


def test_the_published_form_is_beside_each_engine_that_has_it(as_published):
    for engine, name in (("tcc-published", "TCC"), ("clang-O1-published", "Clang -O1")):
        shown = line(as_published, engine, "cpython-3.14")
        assert (shown["published"].text, shown["engine"].below) == (name, "as first published")
    assert published(as_published).sheets[0].notes == tuple(
        "clang-O1 (split) compiles 20 times as fast as clang-O1-published (as first published) and "
        f"9.9 times as fast as clang-O1-whole (one function per pass) on {host}."
        for host in ("cpython-3.14", "pypy-3.11")
    )


def test_the_whole_form_is_left_out_if_it_was_not_raced(crowded_table):
    without = crowded_table[crowded_table["engine"] != "clang-O1-whole"]
    assert not any(engine == "clang-O1-whole" for engine, *_ in found(without))
    assert published(without).sheets[0].notes == ()


def test_a_line_shows_both_sides_without_their_ratio(crowded_table):
    shown = line(crowded_table, "tcc", "pypy-3.11")
    assert (shown["compile"].text, shown["compile"].below) == ("1.77 s", "published 500 ms")
    assert (shown["an epoch"].text, shown["an epoch"].below) == ("≈ 103 s", "published 45.0 s")
    assert (shown["speedup"].text, shown["speedup"].below) == ("142×", "published 1,330×")
    assert shown["bits"].text == "identical"
    assert line(crowded_table, "baseline", "pypy-3.11")["compile"].text == "nothing"


def test_a_counterpart_without_a_result_shows_the_reason(example):
    """tcc and clang-O0 are not in this plan. clang-O1 failed on CPython 3.11, which then has no measured engine."""
    everywhere = found(table_of(example))
    assert {interpreter for _, interpreter, _ in everywhere} == {"cpython-3.13"}
    assert everywhere["tcc", "cpython-3.13", "mnist"].status == "unplanned"
    assert math.isnan(everywhere["tcc", "cpython-3.13", "mnist"].epoch_seconds)
    assert line(table_of(example), "tcc", "cpython-3.13")["compile"].text == "not planned"
    failed = next(cell for cell in example.run.cells if cell.key == "baseline/cpython-3.13/mnist")
    broken = example.with_records(failed, example.stopped(failed, 0, "failed", "worker died"))
    shown = line(table_of(broken), "baseline", "cpython-3.13")
    assert (shown["compile"].text, shown["compile"].mark, shown["an epoch"].text) == ("failed", "failed", "–")


def test_other_cpythons_are_used_only_without_reference_and_pypy(example):
    hot = example.run.cells[0].model_copy(update={"engine": "clang-O1", "interpreter": "cpython-3.11"})
    both = example.with_records(hot, *(example.measured(hot, block) for block in range(3)))
    assert {interpreter for _, interpreter, _ in found(table_of(both))} == {"cpython-3.13"}
    only = both.only(lambda cell: cell.interpreter == "cpython-3.11")
    assert {interpreter for _, interpreter, _ in found(table_of(only))} == {"cpython-3.11"}


@pytest.mark.parametrize(
    "cut",
    [
        lambda example: example.interrupted(0),
        lambda example: example.only(lambda cell: False),
        lambda example: example.only(lambda cell: cell.engine == "baseline"),
        lambda example: example.only(lambda cell: cell.workload == "xor"),
    ],
)
def test_there_is_no_section_without_a_compiled_cell(example, cut):
    assert published(table_of(cut(example))) is None
