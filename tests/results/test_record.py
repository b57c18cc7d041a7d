"""The schema keeps floats exact, refuses unknown fields, and requires times or a reason for their absence."""

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from results.record import Cell, LossPoint, Proof, Record

CELL = Cell(engine="tuple", interpreter="cpython-3.13", workload="xor")


def record(**fields):
    values = {"status": "measured", "step_seconds": (0.5,), **fields}
    return Record(cell=CELL, block=0, started_at=datetime(2025, 1, 1, tzinfo=UTC), **values)


def test_a_cell_prints_as_its_key():
    assert str(CELL) == CELL.key == "tuple/cpython-3.13/xor"


@pytest.mark.parametrize("name", ["", "a/b", "a b", "a\n"])
def test_a_name_that_would_break_a_key_is_refused(name):
    with pytest.raises(ValidationError):
        Cell(engine=name, interpreter="i", workload="w")


@given(st.floats())
def test_a_loss_survives_a_round_trip_to_the_bit(loss):
    point = LossPoint.model_validate_json(LossPoint(step=1, loss=loss).model_dump_json())
    assert math.isnan(point.loss) if math.isnan(loss) else point.loss.hex() == loss.hex()


def test_an_infinite_error_survives_a_round_trip():
    proof = Proof(reference="tuple/cpython-3.13/xor", steps=2, identical=False, worst_error=math.inf)
    assert Proof.model_validate_json(proof.model_dump_json()) == proof


def test_a_record_survives_a_round_trip():
    full = record(phases={"trace": 0.1}, warmup_step_seconds=(0.7,), steps_per_value=3, peak_bytes=1024)
    assert Record.model_validate_json(full.model_dump_json()) == full


@pytest.mark.parametrize(
    "fields",
    [
        {"step_seconds": ()},
        {"status": "failed", "reason": "differs"},
        {"status": "skipped", "step_seconds": ()},
        {"step_seconds": (0.0,)},
        {"pace_seconds": (0.01, 0.01)},
        {"peak_memory": 1},
    ],
    ids=[
        "measured without times",
        "failed with times",
        "skipped without a reason",
        "a time of zero",
        "a pace too many",
        "unknown field",
    ],
)
def test_a_contradiction_is_refused(fields):
    with pytest.raises(ValidationError):
        record(**fields)


def test_a_record_is_immutable():
    with pytest.raises(ValidationError):
        record().block = 1
