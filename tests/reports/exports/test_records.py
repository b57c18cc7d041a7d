"""The table of every record, which exports write."""

from dataclasses import replace

import pytest

from zoomgrad.reports.exports.records import every_record
from zoomgrad.reports.view import view
from zoomgrad.results.record import Cell


def rows(example):
    """Return the rows as dicts from column to text."""
    table = every_record(view(example.run, example.records))
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def row_of(example, cell, block=0):
    wanted = (cell.engine, cell.interpreter, cell.workload, str(block))
    keys = ("engine", "interpreter", "workload", "block")
    return next(row for row in rows(example) if tuple(row[key] for key in keys) == wanted)


def cell_of(key):
    engine, interpreter, workload = key.split("/")
    return Cell(engine=engine, interpreter=interpreter, workload=workload)


def test_every_record_of_the_plan_is_a_row_in_the_plans_order(example):
    found = [(row["engine"], row["interpreter"], row["workload"], row["block"]) for row in rows(example)]
    order = {cell: index for index, cell in enumerate(example.run.cells)}
    records = sorted(example.records, key=lambda record: (order[record.cell], record.block))
    assert found == [(*record.cell.key.split("/"), str(record.block)) for record in records]


def test_records_outside_the_plan_are_left_out(example):
    cut = example.only(lambda cell: cell.workload == "xor")
    assert len(rows(replace(cut, records=example.records))) == len(cut.records)


def test_a_row_has_the_records_figures_unrounded(example):
    cell = cell_of("clang-O1/cpython-3.13/mnist")
    record = next(record for record in example.records if record.cell == cell and record.block == 1)
    row = row_of(example, cell, 1)
    assert float(row["step_seconds"]) == pytest.approx(sum(record.step_seconds) / 3, rel=1e-15)
    assert float(row["compile_seconds"]) == sum(record.phases.values())
    assert (row["phase_compile_seconds"], row["phase_load_seconds"]) == ("15.2", "")
    assert (int(row["peak_bytes"]), int(row["steps_per_value"])) == (record.peak_bytes, record.steps_per_value)
    assert (row["bits"], row["worst_error"], row["reason"]) == ("identical", "0.0", "")
    assert every_record(view(example.run, [])) is None


def test_an_absent_figure_is_empty_and_its_reason_is_told(example):
    cell = cell_of("tuple/cpython-3.13/mnist")
    assert row_of(example, cell)["compile_seconds"] == "0.0", "it compiles nothing"
    loaded = example.measured(cell, 0, phases={}, tape_rows=7)
    assert row_of(example.with_records(cell, loaded), cell)["compile_seconds"] == ""
    # A flaky engine has no speed in this table, as in the others.
    blocks = (example.measured(cell, 0), example.stopped(cell, 1, "failed", "crashed"))
    flaky = row_of(example.with_records(cell, *blocks), cell)
    assert (flaky["status"], flaky["step_seconds"], flaky["peak_bytes"]) == ("measured", "", "")
    assert flaky["reason"] == "not shown: crashed (in 1 of 2 blocks)"


def test_an_error_within_its_bound_is_not_called_different(example):
    cell = cell_of("baseline/cpython-3.13/mnist")
    assert row_of(example, cell)["bits"] == "within 1e-09"
    wrong = row_of(example, cell_of("local-grads/cpython-3.13/xor"))
    assert (wrong["status"], wrong["bits"], wrong["worst_error"]) == ("failed", "different", "0.25")
    assert row_of(example, cell_of("tuple/pypy-3.9/mnist"))["bits"] == ""
    record = example.measured(cell, 0)
    proof = record.proof.model_copy(update={"worst_error": float("inf")})
    infinite = example.with_records(cell, record.model_copy(update={"proof": proof}))
    assert row_of(infinite, cell)["worst_error"] == "Infinity"
