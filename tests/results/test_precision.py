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


def engines(cells):
    return {cell.engine for cell in cells}


BASE = records("baseline", *STEADY)
GONE = records("tcc", 1.0)[0].model_copy(update={"block": 9, "status": "timed-out", "step_seconds": ()})


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([*BASE, *records("tcc", *SHAKY), *records("slots", *STEADY)], {"baseline", "tcc"}),
        ([*BASE, *records("tcc", *STEADY)], set()),
        ([*BASE, *records("tcc", 1.0)], {"baseline", "tcc"}),  # too few processes
        (records("tcc", *SHAKY), set()),  # no baseline, so no speedup
        ([*records("tcc", *SHAKY), *records("baseline", *STEADY, workload="digits")], set()),
        ([*BASE, *records("tcc", *SHAKY), GONE], set()),  # it failed, so it is not tried again
    ],
)
def test_a_wide_interval_needs_more_blocks_of_its_cell_and_its_baseline(given, wanted):
    assert engines(of_looks(given, 0.05, [len(STEADY)])) == wanted


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
