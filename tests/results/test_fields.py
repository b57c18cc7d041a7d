"""A record's names, texts and numbers are safe for paths, terminals and logarithms."""

import math
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from tests.harness.runs import timed
from zoomgrad import engines
from zoomgrad.harness import workloads
from zoomgrad.harness.machine import interpreters
from zoomgrad.harness.plan import presets
from zoomgrad.results.fields import LONGEST_NAME, CellKey, Name, OneLine, StepSeconds, Text
from zoomgrad.results.printable import LONGEST_TEXT, printable
from zoomgrad.results.record import Cell, Record, Run, Vouching

NAME = TypeAdapter(Name)
NOW = datetime(2025, 1, 1, tzinfo=UTC)
CELL = {"engine": "tuple", "interpreter": "cpython-3.13", "workload": "xor"}
RUN = {
    "id": "2025-01-01T000000-smoke",
    "created_at": NOW,
    "command": (),
    "preset": "smoke",
    "seed": 1,
    "blocks": 1,
    "cells": (CELL,),
    "reference_interpreter": "cpython-3.13",
    "engines": {},
    "workloads": {},
    "interpreters": {},
    "machine": {},
}
RECORD = {"cell": CELL, "block": 0, "started_at": NOW, **timed(0.1)}

NO_NAMES = (
    *("", ".", "..", "../x", "/x", "a/b", "a\\b", "a\0", "a\n", "a b", "\x1b[2J", "<b>", "'", "$(x)"),
    *(".hidden", "-option", "a--b", "a-", "é", "a" * (LONGEST_NAME + 1)),
)


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_could_leave_a_folder_or_break_a_key_is_refused(name):
    with pytest.raises(ValidationError):
        NAME.validate_python(name)


@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize(
    "fields",
    [
        lambda name: {"id": name},
        lambda name: {"preset": name},
        lambda name: {"reference_interpreter": name},
        lambda name: {"cells": ({**CELL, "engine": name},)},
        lambda name: {"engines": {name: {"idea": "", "strict": True}}},
        lambda name: {
            "workloads": {name: {"description": "", "steps_per_epoch": 1, "samples_per_step": 1, "batch": 1}}
        },
        lambda name: {"interpreters": {name: {"version": ""}}},
    ],
    ids=["id", "preset", "reference", "cells", "engines", "workloads", "interpreters"],
)
def test_a_plan_refuses_invalid_names(fields, name):
    with pytest.raises(ValidationError):
        Run.model_validate({**RUN, **fields(name)})


def test_all_names_of_the_project_are_valid():
    names = [*engines.names(), *workloads.WORKLOADS, *presets.PRESETS, "cpython-3.14.0a7t", "2026-11-22T101010-quick"]
    names += [found.name for found in interpreters.discover()]
    names += ["mlp-784x1000x10", "random-dag", "rerolled-clang-fast-generic-threads4"]
    for name in names:
        assert NAME.validate_python(name) == name


def test_three_longest_names_make_a_file_name():
    from zoomgrad.results.store import file_name

    name = "a" * LONGEST_NAME
    assert len(file_name(Cell(engine=name, interpreter=name, workload=name), "collector")) <= 255
    TypeAdapter(CellKey).validate_python(f"{name}/{name}/{name}")


@given(st.text(st.characters(exclude_categories=()), max_size=50))
@example("\x1b[2J\x9b31m\u202e\ud800\x00\x7f\u2028")
def test_no_text_of_a_record_reaches_a_terminal_raw(text):
    shown = TypeAdapter(Text).validate_python(text)
    assert all(character in "\n\t" or character.isprintable() or character.isspace() for character in shown)
    assert not set(shown) & set("\x1b\x9b\r\x08\x7f\u202e\u2028")
    assert shown.encode() is not None, "the text can't be written to a file"
    assert printable(shown) == shown
    assert not set(TypeAdapter(OneLine).validate_python(text)) & set("\n\t")


def test_a_long_text_is_cut():
    assert len(printable("\x1b" * LONGEST_TEXT * 2)) == LONGEST_TEXT
    assert printable("a" * LONGEST_TEXT) == "a" * LONGEST_TEXT


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e-320, 1e300, math.inf, -math.inf, math.nan])
def test_a_step_time_without_a_usable_logarithm_is_refused(seconds):
    with pytest.raises(ValidationError):
        TypeAdapter(StepSeconds).validate_python(seconds)
    for field in ("step_seconds", "warmup_step_seconds", "pace_seconds"):
        with pytest.raises(ValidationError):
            Record.model_validate({**RECORD, field: (seconds,)})


@pytest.mark.parametrize(
    "fields",
    [
        {"phases": {"trace": math.inf}},
        {"phases": {"trace": math.nan}},
        {"phases": {"trace": -1.0}},
        {"worker_seconds": math.inf},
        {"other_load": 1e300},
        {"block": 10**18},
        {"peak_bytes": 2**70},
        {"tape_rows": -1},
        {"looped_share": 2.0},
        {"started_at": "0001-01-01T00:00:00+14:00"},
        {"started_at": "9999-12-31T23:59:59-12:00"},
    ],
    ids=str,
)
def test_a_number_out_of_bounds_is_refused(fields):
    with pytest.raises(ValidationError):
        Record.model_validate({**RECORD, **fields})


def test_a_plan_has_each_cell_once():
    with pytest.raises(ValidationError, match="twice in the plan"):
        Run.model_validate({**RUN, "cells": (CELL, CELL)})


def voucher(engine, *checked_by, workload="xor"):
    return {"cell": {**CELL, "engine": engine, "workload": workload}, "checked_by": checked_by, "steps": 8}


FIRST, SECOND = "tuple/cpython-3.13/xor", "tcc/cpython-3.13/xor"


@pytest.mark.parametrize(
    "vouchers",
    [
        [voucher("tuple"), voucher("tcc", FIRST), voucher("clang-O0", FIRST, workload="mnist")],
        [voucher("tuple"), voucher("tcc", FIRST), voucher("tcc", FIRST)],
        [voucher("tuple", SECOND), voucher("tcc", FIRST), voucher("clang-O0", FIRST, SECOND)],
    ],
    ids=["another workload", "twice", "checked by a later one"],
)
def test_a_voucher_can_only_be_checked_by_earlier_ones(vouchers):
    with pytest.raises(ValidationError):
        Vouching(workload="xor", vouchers=vouchers)
