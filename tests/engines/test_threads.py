"""A program that another thread, or its own schedule, calls during a call; and pauses of the collector that overlap."""

from __future__ import annotations

import gc
import threading
from array import array
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.engines.compiled.compiling import usable
from zoomgrad.engines.graph.collector import paused
from zoomgrad.engines.graph.value import Value


@pytest.fixture(params=["bytecode", "tcc", "tcc-extension", "rerolled-numpy"])
def engine(request):
    return usable(request.param)


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


def test_the_collector_runs_again_after_pauses_that_overlap():
    """Compilations may begin and end in any order."""
    assert gc.isenabled()
    for order in ((0, 1), (1, 0)):
        pauses = paused(), paused()
        for pause in pauses:
            pause.__enter__()
            assert not gc.isenabled()
        for number in order:
            pauses[number].__exit__(None, None, None)
        assert gc.isenabled()
