"""Two processes lower the graphs of a family: the results are those of one, whatever becomes of the helper."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from functools import partial

import pytest

pytest.importorskip("numpy")

import engines
from engines.kernel.engine import Clock
from engines.rerolled import beside as beside_module
from engines.rerolled.beside import Beside, Lowered
from engines.rerolled.family import BEFORE_MERGING
from harness import workloads
from tests.engines.compiled.compiling import usable

SMALL = "microgpt-L1-D2-H1-T4"

pytestmark = pytest.mark.host


def in_process(tape):
    return os.getpid()


def slow_in_helper(here, tape):
    """Rows of a tape, and the process. In a helper, it takes so long that this process does most."""
    if os.getpid() != here:
        time.sleep(0.2)
    return os.getpid(), len(tape)


def ends_in_helper(here, tape):
    if os.getpid() != here:
        os._exit(3)
    return os.getpid()


def prints(tape):
    print("to standard output")
    os.write(1, b"and straight to it")
    return os.getpid()


def fails(tape):
    raise ValueError("no")


@pytest.fixture
def tapes():
    """Those of a family, the largest first. Some of their columns are views of memory in C."""
    engine, workload = engines.load("rerolled-tcc"), workloads.load(SMALL)
    shapes = sorted(workload.shapes(), key=lambda shape: -len(shape.columns))
    return [engine._record(Clock(), workload, workload.row(shape.rows[0]))[0] for shape in shapes]


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Start a helper however few rows there are."""
    monkeypatch.setattr(beside_module, "ENOUGH_ROWS", 0)
    monkeypatch.setattr(beside_module, "CORES", 2)


def add_all(beside, tapes):
    """Let tapes wait, and the helper begin with the first. Returns the helper, or None."""
    for tape in tapes:
        beside.add(tape)
    while beside._helper and not (beside._futures[0].running() or beside._futures[0].done()):
        time.sleep(0.001)
    return beside._helper


def all_lowered(lower, tapes):
    with Beside(lower, len(tapes)) as beside:
        helper = add_all(beside, tapes)
        found = beside.lowered()
        assert beside._helper is None
    assert helper is None or helper._process.returncode is not None
    return [step for step, _ in found]


def test_steps_are_those_of_one_process(tapes):
    lower = usable("rerolled-tcc").passes(BEFORE_MERGING)
    assert all_lowered(lower, tapes) == [lower(tape) for tape in tapes]


def test_the_helper_takes_the_first_and_this_process_the_last(tapes):
    here = os.getpid()
    processes, rows = zip(*all_lowered(partial(slow_in_helper, here), tapes))
    assert rows == tuple(map(len, tapes))
    assert processes[0] != here
    assert processes[-1] == here
    assert len(set(processes)) == 2


def test_graphs_of_a_helper_that_ends_are_lowered_here(tapes):
    here = os.getpid()
    assert all_lowered(partial(ends_in_helper, here), tapes) == [here] * len(tapes)


def test_what_a_helper_prints_is_no_answer(tapes):
    assert all_lowered(prints, tapes)[0] != os.getpid()


def test_what_lowering_raises_is_raised_here(tapes):
    with pytest.raises(ValueError, match="no"):
        all_lowered(fails, tapes)


@pytest.mark.parametrize(
    "executable", ["", "/nowhere/python", "/usr/bin/env", None], ids=["empty", "missing", "another program", "none"]
)
def test_without_python_there_is_no_helper(executable, tapes, monkeypatch):
    monkeypatch.setattr(sys, "executable", executable)
    with Beside(in_process, len(tapes)) as beside:
        assert add_all(beside, tapes) is None
        assert {step for step, _ in beside.lowered()} == {os.getpid()}


@pytest.mark.parametrize("change", [("CORES", 1), ("ENOUGH_ROWS", 10**9)])
def test_a_helper_that_does_not_pay_is_not_started(change, tapes, monkeypatch):
    monkeypatch.setattr(beside_module, *change)
    assert set(all_lowered(in_process, tapes)) == {os.getpid()}


def test_a_block_that_is_left_ends_the_helper(tapes):
    with pytest.raises(KeyboardInterrupt), Beside(partial(slow_in_helper, 0), len(tapes)) as beside:
        helper = add_all(beside, tapes)
        raise KeyboardInterrupt
    assert helper._process.returncode is not None


def test_a_family_is_that_of_one_process(monkeypatch):
    workload, engine = workloads.load(SMALL), usable("rerolled-tcc")
    trained = []
    for cores in (2, 1):
        monkeypatch.setattr(beside_module, "CORES", cores)
        trainer = engine.prepare(workload)
        assert all(seconds > 0 for seconds in trainer.shape_seconds.values())
        trainer.train(9)
        trained.append((trainer.losses, trainer.parameters(), trainer.sizes))
    assert trained[0] == trained[1]


def a_helper_works(tapes):
    """Return whether a helper lowers the first tape."""
    return all_lowered(partial(slow_in_helper, os.getpid()), tapes)[0][0] != os.getpid()


@pytest.mark.parametrize("module", ["pickle", "numpy", "random", "sitecustomize"])
def test_a_helper_runs_nothing_that_this_process_does_not(module, tapes, tmp_path, monkeypatch):
    """Neither from the current folder, which may have changed, nor from a path in the environment."""
    (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w'); raise SystemExit(4)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", ".", tmp_path, *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert a_helper_works(tapes)
    assert not (tmp_path / "ran").exists()


def test_an_answer_to_another_question_is_none(tapes, monkeypatch):
    """Then the helper ends, and this process lowers the rest."""
    lower = partial(slow_in_helper, os.getpid())
    monkeypatch.setattr(beside_module.pickle, "load", lambda stream: (-1, Lowered((0, "another tape's"), 0.0)))
    assert [process for process, _ in all_lowered(lower, tapes)] == [os.getpid()] * len(tapes)


def test_a_helper_that_was_stopped_is_not_waited_for(tapes, monkeypatch):
    monkeypatch.setattr(beside_module, "PATIENCE_SECONDS", 0.2)
    with Beside(partial(slow_in_helper, os.getpid()), len(tapes)) as beside:
        os.kill(add_all(beside, tapes)._process.pid, signal.SIGSTOP)
        assert {step[0] for step, _ in beside.lowered()} == {os.getpid()}


def test_without_a_thread_there_is_no_helper(tapes, monkeypatch):
    def refused(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert set(all_lowered(in_process, tapes)) == {os.getpid()}


def test_where_a_broken_pipe_ends_the_process_there_is_no_helper(tapes):
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        assert set(all_lowered(in_process, tapes)) == {os.getpid()}
    finally:
        signal.signal(signal.SIGPIPE, before)


def test_a_helper_starts_no_helper(tapes, monkeypatch):
    monkeypatch.setenv(beside_module._HELPS, "1")
    assert set(all_lowered(in_process, tapes)) == {os.getpid()}
