"""Records -> samples by block."""

import math

from tests.harness.runs import NOW, cell, timed
from zoomgrad.results.record import Record
from zoomgrad.results.samples import at_median_pace, common, compile_seconds, compiled_seconds, speedup, step_seconds

CELL = cell("tcc")


def record(block, status="measured", **fields):
    values = timed(1.0 + block) if status == "measured" else {"status": status, "reason": "gone"}
    return Record(cell=CELL, block=block, started_at=NOW, **{**values, **fields})


def test_only_measured_records_give_samples():
    assert step_seconds([record(0), record(1, "failed"), record(2)]) == {CELL: {0: (1.0,), 2: (3.0,)}}


def test_times_are_corrected_to_the_median_pace():
    """In block 2 the machine ran at half its speed, and in one value even slower."""
    found = [
        record(
            block,
            phases={"trace": 3 * slow},
            step_seconds=(slow, slow, slow**2),
            warmup_step_seconds=(7 * slow,),
            pace_seconds=(slow / 100, slow / 100, slow**2 / 100),
        )
        for block, slow in ((0, 1.0), (1, 1.0), (2, 2.0))
    ]
    assert step_seconds(found)[CELL] == dict.fromkeys((0, 1, 2), (1.0, 1.0, 1.0))
    corrected = at_median_pace([*found, record(3, "failed")])
    assert [one.phases for one in corrected] == [{"trace": 3.0}] * 3 + [{}]
    assert {one.warmup_step_seconds for one in corrected[:3]} == {(7.0,)}
    assert at_median_pace(corrected) == corrected


def test_a_speedup_is_the_quotient_of_the_medians_of_all_blocks():
    base, engine = {0: (2.0,), 1: (2.0,), 2: (2.0,), 3: (9.0,), 4: (9.0,)}, {2: (1.5,), 3: (1.0,), 4: (1.0,)}
    assert speedup(base, engine).value == 2.0
    assert speedup(base, {3: (1.0,), 7: (1.0,)}).value == 2.0
    assert math.isnan(speedup(base, {3: (1.0,), 7: (1.0,)}).low)


def test_a_block_that_loaded_another_blocks_object_has_no_compile_time():
    compiled = record(0, phases={"trace": 0.5, "compile": 1.5})
    loaded, nothing = record(1, tape_rows=9), record(2)
    assert [compile_seconds(one) for one in (compiled, loaded, nothing)] == [2.0, None, 0.0]
    assert compiled_seconds([compiled, loaded, nothing, record(3, phases={"load": 0.0})]) == {CELL: {0: (2.0,)}}


def test_only_blocks_of_both_sides_are_compared():
    base = {0: [1.0], 1: [2.0], 3: [4.0], 4: [5.0]}
    assert common(base, {4: [50.0], 0: [10.0], 2: [30.0]}) == ([[1.0], [5.0]], [[10.0], [50.0]])
    assert common(base, {7: [1.0]}) == ([], [])
