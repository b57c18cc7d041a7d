"""Records -> samples by block."""

from datetime import UTC, datetime

from zoomgrad.results.record import Cell, Record
from zoomgrad.results.samples import (
    common,
    compile_seconds,
    compiled_seconds,
    step_seconds,
    step_seconds_as_measured,
)

CELL = Cell(engine="tcc", interpreter="cpython-3.13", workload="xor")


def record(block, status="measured", **fields):
    values = {"step_seconds": (1.0 + block,)} if status == "measured" else {"reason": "gone"}
    return Record(cell=CELL, block=block, status=status, started_at=datetime.now(UTC), **values, **fields)


def test_only_measured_records_give_samples():
    assert step_seconds([record(0), record(1, "failed"), record(2)]) == {CELL: {0: (1.0,), 2: (3.0,)}}


def test_a_value_is_steadied_by_the_pace_around_it():
    """In block 2 the machine ran at half its speed."""
    found = [
        record(block).model_copy(update={"step_seconds": (seconds,), "pace_seconds": (pace,)})
        for block, seconds, pace in ((0, 1.0, 0.010), (1, 1.0, 0.010), (2, 2.0, 0.020))
    ]
    assert step_seconds(found)[CELL] == {0: [1.0], 1: [1.0], 2: [1.0]}


def test_no_value_is_steadied_if_a_record_of_its_interpreter_has_no_pace():
    paced = record(0).model_copy(update={"pace_seconds": (0.5,)})
    assert step_seconds([paced, record(1)])[CELL] == {0: (1.0,), 1: (2.0,)}


def test_a_block_that_loaded_another_blocks_object_has_no_compile_time():
    compiled = record(0, phases={"trace": 0.5, "compile": 1.5})
    loaded, nothing = record(1, tape_rows=9), record(2)
    assert [compile_seconds(one) for one in (compiled, loaded, nothing)] == [2.0, None, 0.0]
    assert compiled_seconds([compiled, loaded, nothing, record(3, phases={"load": 0.0})]) == {CELL: {0: (2.0,)}}


def test_steps_as_measured_are_not_steadied():
    paced = record(0).model_copy(update={"pace_seconds": (0.5,)})
    assert step_seconds_as_measured([paced, record(1, "failed"), record(2)])[CELL] == {0: (1.0,), 2: (3.0,)}


def test_only_blocks_of_both_sides_are_compared():
    base = {0: [1.0], 1: [2.0], 3: [4.0], 4: [5.0]}
    assert common(base, {4: [50.0], 0: [10.0], 2: [30.0]}) == ([[1.0], [5.0]], [[10.0], [50.0]])
    assert common(base, {7: [1.0]}) == ([], [])
