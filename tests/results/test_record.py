"""The schema keeps floats exact, refuses unknown fields, and requires times or a reason for their absence."""

import math
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.harness.runs import run, timed
from zoomgrad.results.record import Cell, EngineFacts, LossPoint, Proof, Record, Run, Voucher, Vouching
from zoomgrad.results.run_file import Snapshot

CELL = Cell(engine="tuple", interpreter="cpython-3.13", workload="xor")


def record(**fields):
    values = {**timed(*fields.get("step_seconds", (0.5,))), **fields}
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
        {"proof": None},
        {"peak_memory": 1},
    ],
    ids=[
        "measured without times",
        "failed with times",
        "skipped without a reason",
        "a time of zero",
        "a pace too many",
        "measured without a proof",
        "unknown field",
    ],
)
def test_a_contradiction_is_refused(fields):
    with pytest.raises(ValidationError):
        record(**fields)


PROOF = {"reference": "tcc/cpython-3.13/xor", "steps": 8, "stretches": 4, "identical": True, "worst_error": 0.0}


def proven(changes=None, **fields):
    """A measured record with a proof of two values, each two stretches of 8 steps."""
    timed = {"step_seconds": (0.5, 0.5), "stretch_steps": 8, "steps_per_value": 16}
    return record(proof={**PROOF, **(changes or {})}, **{**timed, **fields})


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"worst_error": 5e5}, {}),
        ({"identical": False}, {}),
        ({"steps": 0}, {}),
        ({"steps": 4}, {}),
        ({"stretches": 3}, {}),
        ({"worst_error": math.nan, "identical": False}, {}),
        ({}, {"steps_per_value": 15}),
        ({}, {"step_seconds": (0.5, 0.5, 0.5)}),
    ],
)
def test_a_proof_that_contradicts_itself_or_the_times_is_refused(changes, fields):
    assert proven().proof
    assert proven({"identical": False, "worst_error": 1e-12}).proof
    with pytest.raises(ValidationError):
        proven(changes, **fields)


@pytest.mark.parametrize(
    "promise",
    [{"strict": False, "error_bound": 1e6}, {"strict": False}, {"strict": True, "error_bound": 1e-9}],
)
def test_a_promise_is_identical_bits_or_a_small_bound(promise):
    assert EngineFacts(idea="", strict=False, error_bound=1e-9)
    with pytest.raises(ValidationError):
        EngineFacts(idea="", **promise)


@pytest.mark.parametrize(
    ("reference", "vouched", "older"),
    [
        ("tuple/cpython-3.13/xor", True, True),
        ("tcc/cpython-3.13/xor", True, False),
        ("slots/cpython-3.13/xor", False, False),
        ("tcc/pypy-3.11/xor", False, False),
        ("tcc/cpython-3.13/mnist", False, False),
    ],
)
def test_only_a_cell_that_vouches_is_a_reference(reference, vouched, older):
    """In an older run, which has no vouchings, that is only `tuple`."""
    cells = tuple(CELL.model_copy(update={"engine": name}) for name in ("tuple", "tcc", "clang-O0", "slots"))
    vouching = Vouching(workload="xor", vouchers=tuple(Voucher(cell=cell, steps=8) for cell in cells[:3]))
    for cell in cells:
        proven = record(proof={**PROOF, "reference": reference}).model_copy(update={"cell": cell})
        for vouchings, accepted in (({"xor": vouching}, vouched), ({}, older)):
            said = f"{cell} was compared with {reference}, which vouches for nobody"
            with nullcontext() if accepted else pytest.raises(ValueError, match=said):
                run("a-run", cells=cells).refuse(proven, vouchings)


@pytest.mark.parametrize(
    ("model", "field", "most"),
    [
        (Record, "step_seconds", 200),
        (Record, "losses", 200),
        (Record, "phases", 200),
        (Record, "block", 1_000),
        (Run, "cells", 10_000),
        (Snapshot, "records", 20_000),
    ],
)
def test_what_a_stranger_sends_is_limited_and_the_message_has_the_limit(model, field, most):
    """A file of a few kilobytes must not keep a report busy for minutes."""
    items = {"step_seconds": 0.5, "losses": {"step": 0, "loss": 1.0}, "cells": CELL.model_dump(), "records": record()}
    found = {"phases": {str(index): 0.5 for index in range(most + 1)}, "block": most + 1}.get(field)
    with pytest.raises(ValidationError) as refused:
        model.model_validate({field: found or [items[field]] * (most + 1)})
    assert any(error["loc"] == (field,) and str(most) in error["msg"] for error in refused.value.errors())


def test_a_run_has_a_limited_number_of_engines():
    cells = tuple(CELL.model_copy(update={"engine": f"e{index}"}) for index in range(201))
    assert run("a-run", cells=cells[:200])
    with pytest.raises(ValidationError, match="the cells have 201 engines, and a run at most 200"):
        run("a-run", cells=cells)


def test_a_record_is_immutable():
    with pytest.raises(ValidationError):
        record().block = 1
