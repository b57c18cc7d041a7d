"""Lower the graphs of a family in two processes: this one, and a *helper* beside it.

Lowering is Python, so one process uses one core. Graphs are traced from the largest to the smallest, and each waits
in a line until it is lowered. The helper takes the first, even while smaller ones are still being traced. When all are
traced, this process takes the last, until the two meet:

    positions       16 15 14 13 12 11 10 9 8 7 6 5 4 3
    in the helper   16 15 14 13 12 11
    in this process                   10 9 8 7 6 5 4 3

Tapes and steps are pickled through pipes, which takes a few milliseconds. A graph that the helper fails on is lowered
here, so a helper changes the time and nothing else.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from array import array
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, Optional

from engines.graph.collector import COLLECTOR
from engines.graph.tape import Column, Tape
from engines.kernel.c_engine import CORES
from engines.rerolled.step.step import Step

ENOUGH_ROWS = 500_000
"""From this many rows of all tapes together on, a helper is started. Its start takes about 0.15 s, and lowering that
many rows half a second."""

_SERVE = "import sys; sys.path[:] = {path}; from engines.rerolled.beside import serve; serve()"

Lower = Callable[[Tape], Step]


class Lowered(NamedTuple):
    """A step, and the seconds that lowering its graph took."""

    step: Step
    seconds: float


class Beside:
    """A line of tapes that wait to be lowered. As a context, it ends the helper."""

    def __init__(self, lower: Lower, graphs: int) -> None:
        """lower: can be pickled. graphs: how many will be added."""
        self._lower, self._graphs = lower, graphs
        self._tapes: list[Tape] = []
        self._futures: list[Future[Lowered]] = []
        """Of each tape. One that the helper has not begun can be cancelled."""
        self._helper: Optional[_Helper] = None

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *_: object) -> None:
        if self._helper:
            self._helper.end()

    def add(self, tape: Tape) -> None:
        """Add a tape. The first must be the largest."""
        if not self._tapes and self._graphs * len(tape) >= ENOUGH_ROWS:
            self._helper = _helper(self._lower)
        self._tapes.append(tape)
        self._futures.append(self._helper.submit(tape) if self._helper else Future())

    def lowered(self) -> list[Lowered]:
        """The steps of all tapes. Raises what `lower` raises."""
        pairs = list(zip(self._tapes, self._futures))
        here = [lowered(self._lower, tape) if future.cancel() else None for tape, future in reversed(pairs)]
        # The exception may be that the helper has ended.
        return [
            mine or (lowered(self._lower, tape) if future.exception() else future.result())
            for (tape, future), mine in zip(pairs, reversed(here))
        ]


def lowered(lower: Lower, tape: Tape) -> Lowered:
    """Lower a tape, and time it."""
    start = perf_counter()
    step = lower(tape)
    return Lowered(step, perf_counter() - start)


class _Helper:
    """A process that lowers one tape after the other."""

    def __init__(self, process: subprocess.Popen[bytes], lower: Lower) -> None:
        self._process, self._lower = process, lower
        self._pool = ThreadPoolExecutor(1)

    def submit(self, tape: Tape) -> Future[Lowered]:
        return self._pool.submit(self._ask, tape)

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._pool.shutdown(cancel_futures=True)
        self._process.communicate()

    def _ask(self, tape: Tape) -> Lowered:
        assert self._process.stdin and self._process.stdout
        pickle.dump((self._lower, _portable(tape)), self._process.stdin, pickle.HIGHEST_PROTOCOL)
        self._process.stdin.flush()
        answer = pickle.load(self._process.stdout)  # noqa: S301  (from a process that we started)
        assert isinstance(answer, Lowered)
        return answer


def _helper(lower: Lower) -> Optional[_Helper]:
    """Start a helper; None if there is no core for it, or it can't be started."""
    # A program that embeds Python may name itself as the executable.
    is_python = "py" in Path(sys.executable or "").name and not hasattr(sys, "frozen")
    if CORES == 1 or not is_python:
        return None
    # All of our path, before anything is imported: the start of a path can't be the current folder, unless ours is.
    root = str(Path(__file__).resolve().parents[2])
    code = _SERVE.format(path=repr([*sys.path, root]))
    try:
        process = subprocess.Popen(  # noqa: S603  (our own executable)
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
    return _Helper(process, lower)


def _portable(tape: Tape) -> Tape:
    """The tape with columns that can be pickled: some are views of memory in C."""
    return replace(tape, ops=bytes(tape.ops), left=_copy(tape.left), right=_copy(tape.right), index=_copy(tape.index))


def _copy(column: Column) -> array[int]:
    copy = array("i")
    copy.frombytes(column.tobytes())
    return copy


def serve() -> None:
    """Lower what comes in, until there is no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints must not get between the answers
    with COLLECTOR.paused():
        while True:
            try:
                lower, tape = pickle.load(sys.stdin.buffer)  # noqa: S301  (from the process that started us)
            except EOFError:
                return
            pickle.dump(lowered(lower, tape), answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
