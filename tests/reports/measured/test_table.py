"""The table of figures, one row per cell: which cells have a result, and its figures."""

import math

import pytest

from zoomgrad.reports.measured.table import cells
from zoomgrad.results.record import Cell, Proof


def row(example, key):
    engine, interpreter, workload = key.split("/")
    table = cells(example.run, example.records)
    found = table[(table["engine"] == engine) & (table["interpreter"] == interpreter) & (table["workload"] == workload)]
    assert len(found) == 1
    return found.iloc[0]


CELL = Cell(engine="tuple", interpreter="cpython-3.13", workload="mnist")


def test_two_processes_give_a_time_but_no_interval(example):
    found = row(example, "tuple/cpython-3.11/xor")
    assert (found.status, found.blocks) == ("measured", 2)
    assert math.isfinite(found.step_seconds)
    assert math.isfinite(found.speedup)
    assert math.isnan(found.step_seconds_low)
    assert math.isnan(found.speedup_low)


@pytest.mark.parametrize("status", ["failed", "timed-out"])
def test_one_block_without_a_result_leaves_none(example, status):
    """The blocks that survive a timeout are the fast ones."""
    mixed = (example.measured(CELL, 0), example.stopped(CELL, 1, status, "worker died"), example.measured(CELL, 2))
    found = row(example.with_records(CELL, *mixed), CELL.key)
    assert (found.status, found.reason) == (status, "worker died (in 1 of 3 blocks)")
    assert math.isnan(found.step_seconds)
    assert math.isnan(found.speedup)


@pytest.mark.parametrize(
    ("engine", "identical", "error", "status", "bits"),
    [
        ("tuple", True, 0.0, "measured", "identical"),
        ("tuple", False, 1e-16, "failed", "different"),
        ("baseline", False, 1e-10, "measured", "within 1e-09"),
        ("baseline", False, 1e-8, "failed", "different"),
        ("baseline", True, 0.0, "measured", "identical"),
        ("baseline", False, math.inf, "failed", "different"),
    ],
)
def test_a_cell_beyond_its_error_bound_has_no_time(example, engine, identical, error, status, bits):
    """This holds regardless of the record's own status."""
    cell = CELL.model_copy(update={"engine": engine})
    proof = Proof(reference="tuple/cpython-3.13/mnist", steps=2, identical=identical, worst_error=error)
    found = row(
        example.with_records(cell, *(example.measured(cell, block, proof=proof) for block in range(3))), cell.key
    )
    assert (found.status, found.bits) == (status, bits)
    assert math.isnan(found.step_seconds) == (status == "failed")


def test_a_failed_baseline_leaves_no_speedups(example):
    baseline = CELL.model_copy(update={"engine": "baseline"})
    broken = example.with_records(baseline, example.stopped(baseline, 0, "failed", "differs"))
    assert math.isnan(row(broken, CELL.key).speedup)
    assert math.isfinite(row(broken, CELL.key).step_seconds)
