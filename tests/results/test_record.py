"""The schema keeps floats exact and refuses contradictions; its values are safe for paths, terminals and logarithms."""

import math
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from tests.harness.runs import run, timed
from zoomgrad import engines
from zoomgrad.harness import workloads
from zoomgrad.harness.machine import interpreters
from zoomgrad.harness.plan import presets
from zoomgrad.results.fields import LONGEST_NAME, Name, OneLine, Text
from zoomgrad.results.printable import LONGEST_TEXT, printable
from zoomgrad.results.record import Cell, EngineFacts, Record, Run, Voucher, Vouching
from zoomgrad.results.run_file import Snapshot

CELL = Cell(engine="tuple", interpreter="cpython-3.13", workload="xor")
NAME = TypeAdapter(Name)
PROOF = {"reference": "tcc/cpython-3.13/xor", "steps": 8, "stretches": 4, "identical": True, "worst_error": 0.0}


def record(**fields):
    """A measured record with a proof of two values, each two stretches of 8 steps."""
    stretches = {"stretch_steps": 8, "steps_per_value": 16, "proof": PROOF}
    values = {**timed(*fields.get("step_seconds", (0.5, 0.5))), **stretches, **fields}
    return Record(cell=CELL, block=0, started_at=datetime(2025, 1, 1, tzinfo=UTC), **values)


# Names and texts


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "../x", "/x", "a/b", "a\\b", "a\0", "a\n", "a b", "\x1b[2J", "<b>", "'", "$(x)"),
        *(".hidden", "-option", "a--b", "a-", "é", "a" * (LONGEST_NAME + 1)),
    ],
)
def test_a_name_that_could_leave_a_folder_or_break_a_key_is_refused(name):
    for use in (NAME.validate_python, lambda name: run(name), lambda name: run("a-run", engines={name: engine()})):
        with pytest.raises(ValidationError):
            use(name)


def engine():
    return EngineFacts(idea="", strict=True)


def test_all_names_of_the_project_are_valid():
    names = [*engines.names(), *workloads.WORKLOADS, *presets.PRESETS, "cpython-3.14.0a7t", "2026-11-22T101010-quick"]
    names += [found.name for found in interpreters.discover()]
    names += ["mlp-784x1000x10", "random-dag", "rerolled-clang-fast+generic+threads=4"]
    for name in names:
        assert NAME.validate_python(name) == name


@given(st.text(st.characters(exclude_categories=()), max_size=50))
@example("\x1b[2J\x9b31m\u202e\ud800\x00\x7f\u2028")
def test_no_text_of_a_record_reaches_a_terminal_raw(text):
    shown = TypeAdapter(Text).validate_python(text)
    assert all(character in "\n\t" or character.isprintable() or character.isspace() for character in shown)
    assert not set(shown) & set("\x1b\x9b\r\x08\x7f\u202e\u2028")
    assert shown.encode() is not None, "the text can't be written to a file"
    assert printable(shown) == shown
    assert len(printable(text * LONGEST_TEXT)) <= LONGEST_TEXT
    assert not set(TypeAdapter(OneLine).validate_python(text)) & set("\n\t")


# Numbers


@given(st.floats(1e-10, 1e6))
def test_a_time_survives_a_round_trip_to_the_bit(seconds):
    (kept,) = Record.model_validate_json(record(step_seconds=(seconds,)).model_dump_json()).step_seconds
    assert kept.hex() == seconds.hex()


BAD_SECONDS = (0.0, -1.0, 1e-320, 1e300, math.inf, math.nan)
BAD_NUMBERS = [
    *({name: (bad, bad)} for name in ("step_seconds", "warmup_step_seconds", "pace_seconds") for bad in BAD_SECONDS),
    *({"phases": {"trace": bad}} for bad in (math.inf, math.nan, -1.0)),
    *({"worker_seconds": math.inf}, {"other_load": 1e300}, {"peak_bytes": 2**70}, {"tape_rows": -1}),
    *({"looped_share": 2.0}, {"peak_memory": 1}, {"steps_per_value": 0.5}),
]
"""None has a usable logarithm, or a place in a chart; the last two are not figures."""
CONTRADICTIONS = [
    *({"step_seconds": ()}, {"status": "failed", "reason": "differs"}, {"status": "skipped", "step_seconds": ()}),
    *({"pace_seconds": (0.01,)}, {"pace_seconds": ()}, {"proof": None}),
    *({"steps_per_value": 15}, {"step_seconds": (0.5, 0.5, 0.5)}),
]
BAD_PROOFS = [
    *({"worst_error": 5e5}, {"identical": False}, {"worst_error": math.nan, "identical": False}),
    *({"steps": 0}, {"steps": 4}, {"stretches": 3}),
]
BAD = [*BAD_NUMBERS, *CONTRADICTIONS, *({"proof": {**PROOF, **wrong}} for wrong in BAD_PROOFS)]


@pytest.mark.parametrize("fields", BAD, ids=str)
def test_a_number_out_of_bounds_and_a_contradiction_are_refused(fields):
    assert record().proof
    assert record(proof={**PROOF, "identical": False, "worst_error": 1e-12}).proof
    with pytest.raises(ValidationError):
        record(**fields)


@pytest.mark.parametrize(
    ("model", "field", "most"),
    [
        (Record, "step_seconds", 200),
        (Record, "phases", 200),
        (Record, "block", 1_000),
        (Run, "cells", 10_000),
        (Snapshot, "records", 20_000),
    ],
)
def test_what_a_stranger_sends_is_limited_and_the_message_has_the_limit(model, field, most):
    """A file of a few kilobytes must not keep a report busy for minutes."""
    items = {"step_seconds": 0.5, "cells": CELL.model_dump(), "records": record()}
    found = {"phases": {str(index): 0.5 for index in range(most + 1)}, "block": most + 1}.get(field)
    with pytest.raises(ValidationError) as refused:
        model.model_validate({field: found or [items[field]] * (most + 1)})
    assert any(error["loc"] == (field,) and str(most) in error["msg"] for error in refused.value.errors())


# Plans and vouchers


def test_a_plan_has_each_cell_once_and_a_limited_number_of_engines():
    cells = tuple(CELL.model_copy(update={"engine": f"e{index}"}) for index in range(201))
    assert run("a-run", cells=cells[:200])
    with pytest.raises(ValidationError, match="the cells have 201 engines, and a run at most 200"):
        run("a-run", cells=cells)
    with pytest.raises(ValidationError, match="twice in the plan"):
        run("a-run", cells=(CELL, CELL))


@pytest.mark.parametrize(
    ("reference", "vouched", "bare"),
    [
        ("tuple/cpython-3.13/xor", True, True),
        ("tcc/cpython-3.13/xor", True, False),
        ("slots/cpython-3.13/xor", False, False),
        ("tcc/pypy-3.11/xor", False, False),
        ("tcc/cpython-3.13/mnist", False, False),
    ],
)
def test_only_a_cell_that_vouches_is_a_reference(reference, vouched, bare):
    """In a run without vouchings, that is only `tuple`."""
    cells = tuple(CELL.model_copy(update={"engine": name}) for name in ("tuple", "tcc", "clang-O0", "slots"))
    vouching = Vouching(workload="xor", vouchers=tuple(Voucher(cell=cell, steps=8) for cell in cells[:3]))
    for cell in cells:
        proven = record(proof={**PROOF, "reference": reference}).model_copy(update={"cell": cell})
        for vouchings, accepted in (({"xor": vouching}, vouched), ({}, bare)):
            said = f"{cell} was compared with {reference}, which vouches for nobody"
            with nullcontext() if accepted else pytest.raises(ValueError, match=said):
                run("a-run", cells=cells).refuse(proven, vouchings)


def voucher(engine, workload="xor"):
    return Voucher(cell=CELL.model_copy(update={"engine": engine, "workload": workload}), steps=8)


@pytest.mark.parametrize("last", [voucher("clang-O0", "mnist"), voucher("tcc")])
def test_vouchers_are_different_cells_of_the_workload(last):
    assert Vouching(workload="xor", vouchers=(voucher("tuple"), voucher("tcc"), voucher("clang-O0")))
    with pytest.raises(ValidationError):
        Vouching(workload="xor", vouchers=(voucher("tuple"), voucher("tcc"), last))
