"""Records -> the cells that need more blocks."""

from datetime import UTC, datetime

import pytest

from tests.harness.runs import run, timed
from zoomgrad.results.precision import error, looks
from zoomgrad.results.precision import imprecise as of_looks
from zoomgrad.results.record import Cell, Record


def records(engine, *seconds, workload="xor"):
    cell = Cell(engine=engine, interpreter="cpython-3.13", workload=workload)
    return [
        Record(cell=cell, block=block, started_at=datetime.now(UTC), **timed(value, value))
        for block, value in enumerate(seconds)
    ]


STEADY = (1.0, 1.001, 0.999, 1.0005, 1.0, 0.9995)
SHAKY = (1.0, 1.4, 0.7, 1.2, 0.9, 1.6)


def imprecise(records, precision):
    """For a run that looks once."""
    return of_looks(records, precision, [len(STEADY)])


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


@pytest.mark.parametrize(
    ("blocks", "precision", "at"),
    [(5, 0.05, [5, 10, 20, 40, 60]), (1, 0.05, [3, 6, 12, 24, 48, 60]), (70, 0.05, [70]), (5, 0.0, [5])],
)
def test_a_run_looks_at_its_intervals_a_few_times(blocks, precision, at):
    asked = run("run", blocks=blocks, precision=precision)
    assert looks(asked) == at
    assert error(asked) == pytest.approx(0.05 / len(at))


def test_blocks_after_a_look_wait_for_the_next_one():
    shaky, steady = records("tcc", *SHAKY, 1.0), records("baseline", *STEADY, 1.0)
    # Nobody looks at blocks three to five, however narrow they make the interval.
    narrow = [record.model_copy(update={"step_seconds": (1.0,), "pace_seconds": (0.01,)}) for record in shaky[3:]]
    assert engines(of_looks([*steady, *shaky[:3], *narrow], 0.05, [3, 10])) == {"baseline", "tcc"}
    # The more often a run looks, the more certain each look must be.
    mild = records("tcc", 1.0, 1.02, 0.99, 1.01, 0.98, 1.0)
    assert not of_looks([*steady[:6], *mild], 0.019, [6])
    assert of_looks([*steady[:6], *mild], 0.019, [6, 12, 24, 48])
