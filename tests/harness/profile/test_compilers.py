"""Compilers' own accounts of their time: parsing of recorded ones, and real compilers."""

import stat
import tempfile
from datetime import UTC, datetime

import pytest

from zoomgrad import engines
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.kernel.toolchains import Toolchain
from zoomgrad.harness.containment import Limits
from zoomgrad.harness.profile import compilers
from zoomgrad.harness.profile.compilers import (
    Account,
    clang_account,
    gcc_account,
    profile,
    shares,
)
from zoomgrad.harness.profile.profile_session import NoProfile, Session
from zoomgrad.results.profile import PROFILE
from zoomgrad.results.record import Cell


@pytest.fixture
def session(tmp_path, monkeypatch):
    """`session(engine, workload)`: the Session that the profiler gets. It must leave no temporary file."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def make(engine, workload="xor", *, seconds=0.0, timeout_seconds=60.0):
        cell = Cell(engine=engine, interpreter="cpython-3.13", workload=workload)
        return Session(cell, engines.load(engine), None, seconds, Limits(timeout_seconds), tmp_path / "kept")

    yield make
    assert not list(temporary.iterdir())


def refusal(session):
    with pytest.raises(NoProfile) as error:
        profile(session)
    assert error.value.reason
    assert error.value.remedy
    return error.value


# --- gcc's table -------------------------------------------------------------------------------------------------

GCC_12 = """\
Time variable                                   usr           sys          wall           GGC
 phase opt and generate             :   0.16 ( 94%)   0.02 (100%)   0.19 ( 95%)  5073k ( 77%)
 callgraph functions expansion      :   0.13 ( 76%)   0.02 (100%)   0.15 ( 75%)  3821k ( 58%)
 df live regs                       :   0.02 ( 12%)   0.00 (  0%)   0.00 (  0%)     0  (  0%)
 parser function body               :   0.00 (  0%)   0.00 (  0%)   0.01 (  5%)   261k (  4%)
 forward prop                       :   0.00 (  0%)   0.00 (  0%)   0.03 ( 15%)  7096  (  0%)
 integrated RA                      :   0.01 (  6%)   0.00 (  0%)   0.04 ( 20%)   763k ( 12%)
 TOTAL                              :   0.17          0.02          0.20         6611k
"""
"""Output of gcc 12.2 -O1 for a unit of `rerolled-gcc` on `digits`, without some passes."""


def test_gccs_table():
    account = gcc_account(GCC_12)
    assert account.seconds == 0.20
    assert account.passes["integrated RA"] == 0.04, "wall time is in the third of four columns"
    assert account.passes["forward prop"] == 0.03
    assert account.passes["df live regs"] == 0.0, "this row has processor time but no wall time"
    assert account.passes["parser function body"] == 0.01
    assert "TOTAL" not in account.passes


# --- Clang's trace -----------------------------------------------------------------------------------------------


def event(name, start, duration, *, detail=None, thread=1, phase="X"):
    arguments = {} if detail is None else {"args": {"detail": detail}}
    return {"ph": phase, "name": name, "ts": start, "dur": duration, "tid": thread, "pid": 1, **arguments}


TRACE = [  # Clang writes events in the order of their ends
    event("ParseFunctionDefinition", 20, 100, detail="forward_0"),
    event("Frontend", 10, 200),
    event("SROAPass", 300, 40, detail="forward_0"),
    event("InstCombinePass", 340, 60, detail="forward_0"),
    event("PassManager<Function>", 300, 101, detail="forward_0"),
    event("InstCombinePass", 410, 50, detail="forward_1"),
    event("PassManager<Function>", 405, 60, detail="forward_1"),
    event("RunPass", 500, 10, detail="Dominator Tree Construction"),
    event("RunPass", 510, 300, detail="Greedy Register Allocator"),
    event("OptFunction", 500, 320, detail="forward_0"),
    event("ExecuteCompiler", 0, 1000),
    event("Total ExecuteCompiler", 0, 1000, thread=2),
    event("Total InstCombinePass", 0, 110, thread=3),
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 1, "ts": 0, "cat": "", "args": {"name": "clang"}},
]


def test_a_pass_gets_its_own_time_without_inner_passes():
    account = clang_account({"traceEvents": TRACE, "beginningOfTime": 1})
    assert account.seconds == pytest.approx(1000e-6)
    assert {name: round(seconds * 1e6) for name, seconds in account.passes.items()} == {
        "ExecuteCompiler": 1000 - 200 - 101 - 60 - 320,
        "Frontend": 100,
        "ParseFunctionDefinition": 100,
        "PassManager<Function>": 1 + 10,
        "SROAPass": 40,
        "InstCombinePass": 110,
        "Dominator Tree Construction": 10,
        "Greedy Register Allocator": 300,
        "OptFunction": 10,
    }


# --- shares ------------------------------------------------------------------------------------------------------


def test_units_are_added_and_small_passes_are_merged():
    accounts = [Account(6.0, {"a": 1.0, "b": 3.0, "small": 0.03}), Account(4.0, {"a": 3.5, "tiny": 0.01})]
    assert shares(accounts) == [
        {"name": "a", "share": pytest.approx(0.45)},
        {"name": "b", "share": pytest.approx(0.3)},
        {"name": "others", "share": pytest.approx(0.25)},
    ]


# --- real compilers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "workload", "well_known"),
    [
        ("gcc-O1", "mlp-40x20x10", None),  # a sample of so few ticks may miss any pass
        ("clang-O1", "digits", "Greedy Register Allocator"),
        ("rerolled-clang", "digits", "InstCombinePass"),
    ],
)
def test_a_real_compiler(session, engine, workload, well_known):
    try:
        engines.load(engine).check()
    except Unavailable as missing:
        pytest.skip(missing.reason)
    found = valid(session(engine, workload), profile(session(engine, workload)))
    assert found.tool.startswith(engines.load(engine).options.compiler)
    assert found.flags == engines.load(engine).flags
    assert found.source_bytes > 1000
    assert found.seconds > 0
    assert found.preparations == 1
    names = [row.name for row in found.passes]
    assert well_known is None or well_known in names
    assert not {"RunPass", "RunLoopPass", "TOTAL"} & set(names)


def valid(session, fields):
    """Check that the fields make a profile with well-formed passes, and return it."""
    cell = {"profiler": "compiler", "cell": session.cell, "status": "measured", "started_at": datetime.now(UTC)}
    found = PROFILE.validate_python({**cell, **fields})
    names = [row.name for row in found.passes]
    sizes = [row.share for row in found.passes if row.name != "others"]
    assert len(set(names)) == len(names)
    assert "others" not in names[:-1]
    assert sizes == sorted(sizes, reverse=True)
    assert all(share >= compilers.LEAST_SHARE for share in sizes)
    assert sum(row.share for row in found.passes) == pytest.approx(1.0)
    return found


# --- compilers that misbehave ------------------------------------------------------------------------------------


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """`compiler(script)`: replace every compiler by the script, which finds its object's path after `-o`."""

    def make(text):
        program = tmp_path / "fakecc"
        program.write_text(f"#!/bin/sh\necho \"$@\" >> '{tmp_path}/calls'\n{text}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(
            toolchains, "find", lambda name: Toolchain(name.partition("-")[0], (str(program),), "1.2.3")
        )
        return lambda: (tmp_path / "calls").read_text().splitlines()

    return make


def test_a_compiler_that_hangs_is_timed_out(session, compiler):
    calls = compiler("sleep 1000")
    assert refusal(session("gcc-O1", timeout_seconds=0.5)).status == "timed-out"
    assert len(calls()) == 1


SAYS_TABLE = "cat <<'END'\nTime variable  usr  wall\n CSE  :  0.0 ( 0%)  0.3 ( 30%)\n TOTAL  :  0.0  1.0\nEND"


def test_the_compiler_gets_the_engines_flags(session, compiler):
    calls = compiler(SAYS_TABLE)
    found = valid(session("gcc-O1"), profile(session("gcc-O1")))
    assert len(calls()) == found.units
    flags = " ".join(engines.load("gcc-O1").flags)
    assert all(call.startswith(f"{flags} -ftime-report -fPIC -c -o ") for call in calls())
    assert (found.tool, found.seconds, found.preparations) == ("gcc 1.2.3", found.units, 1)
    assert [(row.name, row.share) for row in found.passes] == [("others", 0.7), ("CSE", 0.3)][::-1]
