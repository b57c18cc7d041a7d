"""The table of every record, which exports write."""

from dataclasses import replace

import pytest

from reports.sections.records import every_record
from reports.view import view
from results import units
from results.record import Cell

HOSTILE = "=cmd()<script>window.ran=1<\\script>\"'|`"
FORMULAS = ("=cmd()", "+1", "-1", "@SUM(A1)", "\t=1", " =1", 'a\nb,"c"; d', "it's")
"""Reasons that a spreadsheet would run as formulas, or that CSV must quote."""


def rows(example):
    """Return the rows as dicts from column to datum."""
    table = every_record(view(example.run, example.records))
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def row_of(example, cell, block=0):
    wanted = (cell.engine, cell.interpreter, cell.workload, str(block))
    keys = ("engine", "interpreter", "workload", "block")
    return next(row for row in rows(example) if tuple(row[key].text for key in keys) == wanted)


def cell_of(key):
    engine, interpreter, workload = key.split("/")
    return Cell(engine=engine, interpreter=interpreter, workload=workload)


def test_every_record_of_the_plan_is_a_row_in_the_plans_order(example):
    found = [
        (row["engine"].text, row["interpreter"].text, row["workload"].text, row["block"].text) for row in rows(example)
    ]
    order = {cell: index for index, cell in enumerate(example.run.cells)}
    records = sorted(example.records, key=lambda record: (order[record.cell], record.block))
    assert found == [(*record.cell.key.split("/"), str(record.block)) for record in records]


def test_records_outside_the_plan_are_left_out(example):
    cut = example.only(lambda cell: cell.workload == "xor")
    assert len(rows(replace(cut, records=example.records))) == len(cut.records)


def test_a_run_without_records_has_no_table(example):
    assert every_record(view(example.run, [])) is None


def test_a_row_has_the_records_figures_as_text_and_as_numbers(example):
    cell = cell_of("clang-O1/cpython-3.13/mnist")
    record = next(record for record in example.records if record.cell == cell and record.block == 1)
    row = row_of(example, cell, 1)
    mean = sum(record.step_seconds) / 3
    assert float(row["step_seconds"].value) == pytest.approx(mean, rel=1e-15)
    assert row["step_seconds"].text == units.duration(mean)
    assert float(row["compile_seconds"].value) == sum(record.phases.values())
    assert row["phase_compile_seconds"].text == "15.2 s"
    assert (row["phase_load_seconds"].text, row["phase_load_seconds"].value) == (units.ABSENT, "")
    assert int(row["peak_bytes"].value) == record.peak_bytes
    assert int(row["steps_per_value"].value) == record.steps_per_value
    assert (row["bits"].text, row["worst_error"].value) == ("identical", "0.0")
    assert row["reason"].text == ""


def test_a_row_has_the_ready_time_or_the_reason_why_there_is_none(example):
    cell = cell_of("tuple/cpython-3.13/mnist")
    ready = row_of(example.with_records(cell, example.measured(cell, 0, ready_seconds=0.25)), cell)
    assert (ready["ready_seconds"].text, ready["ready_seconds"].value) == ("250 ms", "0.25")
    assert ready["ready_cpu_seconds"].text == units.ABSENT
    absent = row_of(example.with_records(cell, example.measured(cell, 0, ready_absence="too slow")), cell)
    assert (absent["ready_seconds"].text, absent["reason"].text) == (units.ABSENT, "no ready time: too slow")


def test_compile_time_is_zero_without_compiling_and_absent_if_loaded(example):
    assert row_of(example, cell_of("tuple/cpython-3.13/mnist"))["compile_seconds"].value == "0.0"
    cell = cell_of("clang-O1/cpython-3.13/mnist")
    loaded = example.with_records(cell, example.measured(cell, 0, phases={}, tape_rows=7))
    assert row_of(loaded, cell)["compile_seconds"].text == units.ABSENT


def test_an_error_within_its_bound_is_not_called_different(example):
    assert row_of(example, cell_of("baseline/cpython-3.13/mnist"))["bits"].text == "within 1e-09"
    wrong = row_of(example, cell_of("local-grads/cpython-3.13/xor"))
    assert (wrong["status"].text, wrong["bits"].text, wrong["worst_error"].value) == ("failed", "different", "0.25")
    assert row_of(example, cell_of("tuple/pypy-3.9/mnist"))["bits"].text == units.ABSENT


def test_a_measured_block_of_a_cell_that_failed_shows_no_figure(example):
    """A flaky engine has no speed in this table, as in the others."""
    cell = cell_of("tuple/cpython-3.13/mnist")
    blocks = (example.measured(cell, 0), example.stopped(cell, 1, "failed", "crashed"))
    row = row_of(example.with_records(cell, *blocks), cell)
    assert (row["status"].text, row["step_seconds"].text, row["peak_bytes"].text) == ("measured", "–", "–")
    assert row["reason"].text == "not shown: crashed (in 1 of 2 blocks)"


def test_python_and_javascript_can_read_an_infinite_error(example):
    cell = cell_of("baseline/cpython-3.13/mnist")
    record = example.measured(cell, 0)
    proof = record.proof.model_copy(update={"worst_error": float("inf")})
    value = row_of(example.with_records(cell, record.model_copy(update={"proof": proof})), cell)["worst_error"].value
    assert value == "Infinity"
    assert float(value) == float("inf")


def test_column_names_are_unique(example):
    names = [column.name for column in every_record(view(example.run, example.records)).columns]
    assert len(names) == len(set(names))
