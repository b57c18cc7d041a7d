"""Records -> the cells that need more blocks."""

from datetime import UTC, datetime

from results.precision import imprecise
from results.record import Cell, Record


def records(engine, *seconds, workload="xor"):
    cell = Cell(engine=engine, interpreter="cpython-3.13", workload=workload)
    return [
        Record(cell=cell, block=block, status="measured", started_at=datetime.now(UTC), step_seconds=(value, value))
        for block, value in enumerate(seconds)
    ]


STEADY = (1.0, 1.001, 0.999, 1.0005, 1.0, 0.9995)
SHAKY = (1.0, 1.4, 0.7, 1.2, 0.9, 1.6)


def engines(cells):
    return {cell.engine for cell in cells}


def test_a_wide_interval_needs_more_blocks_of_its_cell_and_its_baseline():
    found = imprecise([*records("baseline", *STEADY), *records("tcc", *SHAKY), *records("slots", *STEADY)], 0.05)
    assert engines(found) == {"baseline", "tcc"}


def test_precise_speedups_need_no_more_blocks():
    assert not imprecise([*records("baseline", *STEADY), *records("tcc", *STEADY)], 0.05)


def test_too_few_processes_are_not_precise():
    assert engines(imprecise([*records("baseline", *STEADY), *records("tcc", 1.0)], 0.05)) == {"baseline", "tcc"}


def test_a_cell_without_a_baseline_needs_no_more_blocks():
    assert not imprecise(records("tcc", *SHAKY), 0.05)
    assert not imprecise([*records("tcc", *SHAKY), *records("baseline", *STEADY, workload="digits")], 0.05)


def test_a_cell_that_failed_needs_no_more_blocks():
    gone = records("tcc", *SHAKY)[0].model_copy(update={"block": 9, "status": "timed-out", "step_seconds": ()})
    assert not imprecise([*records("baseline", *STEADY), *records("tcc", *SHAKY), gone], 0.05)
