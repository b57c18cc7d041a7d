"""Several threads: each with its own programs, all compiling one graph, or all calling one program by mistake."""

from __future__ import annotations

import gc
import sys
import threading
from array import array
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.graphs import bits
from zoomgrad.engines.graph.collector import COLLECTOR
from zoomgrad.engines.graph.value import Value
from zoomgrad.harness import workloads

THREADS = 4


@pytest.fixture(params=["bytecode", "tcc", "tcc-extension", "rerolled-numpy"])
def engine(request):
    return usable(request.param)


@pytest.fixture
def impatient():
    """Make threads switch as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*functions):
    """Run the functions at the same time and return their results."""
    start = threading.Barrier(len(functions))

    def run(function):
        start.wait(timeout=60)
        return function()

    with ThreadPoolExecutor(len(functions)) as pool:
        return [future.result(timeout=300) for future in [pool.submit(run, function) for function in functions]]


# --- one program -------------------------------------------------------------------------------------------------


def square(engine):
    """Compile a program with the loss (x * p) ** 2."""
    x, p = Value(1.0), Value(2.0)
    return engine.compile((x * p) ** 2, inputs=[x], parameters=[p], outputs=[x * p])


CALLS = {
    "set_input": lambda program: program.set_input([3.0]),
    "forward": lambda program: program.forward(),
    "backward": lambda program: program.backward(),
    "zero_grad": lambda program: program.zero_grad(),
    "update": lambda program: program.update(0.1),
    "train": lambda program: program.train(array("d", [1.0]), rate=0.1),
    "parameters": lambda program: setattr(program, "parameters", array("d", [1.0])),
    "gradients": lambda program: setattr(program, "gradients", array("d", [1.0])),
}
RUNNING = "this Program is already running: in another thread, or its rate schedule called it\n  Compile"


def test_a_schedule_may_not_call_its_own_program(engine):
    program = square(engine)
    for call in CALLS.values():
        with pytest.raises(RuntimeError, match=RUNNING):
            program.train(array("d", [1.0]), rate=lambda update, call=call: call(program))
    assert (list(program.parameters), program.forward()) == ([2.0], 4.0), "the program no longer works"


def test_a_program_runs_in_one_thread_at_a_time(engine):
    """A schedule that waits keeps the first thread inside a call."""
    program, is_in, may_go_on = square(engine), threading.Event(), threading.Event()

    def rate(update):
        is_in.set()
        assert may_go_on.wait(timeout=60)
        return 0.25

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(program.train, array("d", [1.0]), rate=rate)
        assert is_in.wait(timeout=60)
        try:
            for call in CALLS.values():
                with pytest.raises(RuntimeError, match=RUNNING):
                    call(program)
        finally:
            may_go_on.set()
        assert list(first.result(timeout=60)) == [4.0]
    assert list(program.parameters) == [2.0 - 0.25 * 4.0]


def test_threads_that_share_one_program(engine, impatient):
    """Every call either runs alone or is refused."""
    program, rows = square(engine), array("d", [1.0] * 20)
    refused = []

    def use():
        for _ in range(20):
            try:
                assert list(program.train(rows, rate=0.0)) == [4.0] * 20
                program.set_input([1.0])
            except RuntimeError as error:
                refused.append(str(error))

    together(*[use] * THREADS)
    assert all("already running" in why for why in refused)
    assert program.forward() == 4.0


# --- one program per thread --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tuple", "replay"])
def test_threads_train_workloads(name, impatient):
    engine = usable(name)

    def train():
        workload = workloads.load("xor")
        trainer = engine.prepare(workload)
        trainer.restart(batch=3)
        trainer.train(50)
        return bits(trainer.losses), bits(trainer.parameters()), bits(trainer.gradients())

    alone = train()
    assert together(*[train] * THREADS) == [alone] * THREADS


# --- state that threads share ------------------------------------------------------------------------------------


def test_the_collector_runs_again_after_the_last_pause():
    """Compilations may begin and end in any order."""
    assert gc.isenabled()
    first, second = COLLECTOR.paused(), COLLECTOR.paused()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not gc.isenabled(), "the collector runs during the second pause"
    second.__exit__(None, None, None)
    assert gc.isenabled()
