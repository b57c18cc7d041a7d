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
import signal
import subprocess
import sys
from array import array
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, Optional

from engines.graph.collector import COLLECTOR
from engines.graph.tape import Column, Tape
from engines.kernel.c_engine import CORES
from engines.rerolled.step.step import Step

ENOUGH_ROWS = 500_000
"""A helper is started if all graphs together may have this many rows. Lowering them takes half a second, and starting a
helper about 0.15 s."""
PATIENCE_SECONDS = 60.0
"""How long to wait for the helper's last graph before it is lowered here. A signal may have stopped the helper."""

_HELPS = "ZOOMGRAD_HELPS"
"""Variable in the environment of a helper, which starts none itself."""
_SERVE = "import sys; sys.path[:] = {path}; from engines.rerolled.beside import serve; serve({answers})"

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
        """One for each tape. It can be cancelled until the helper begins with that tape."""
        self._helper: Optional[_Helper] = None

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the helper, if there is one."""
        if self._helper:
            self._helper.end()
            self._helper = None

    def add(self, tape: Tape) -> None:
        """Add a tape. The first must be the largest."""
        if not self._tapes and self._graphs * len(tape) >= ENOUGH_ROWS:
            self._helper = _helper(self._lower)
        self._tapes.append(tape)
        self._futures.append(self._helper.submit(tape) if self._helper else Future())

    def lowered(self) -> list[Lowered]:
        """The steps of all tapes, and the end of the helper. Raises what `lower` raises."""
        pairs = list(zip(self._tapes, self._futures))
        here = [lowered(self._lower, tape) if future.cancel() else None for tape, future in reversed(pairs)]
        found = [mine or self._answer(tape, future) for (tape, future), mine in zip(pairs, reversed(here))]
        self.end()
        return found

    def _answer(self, tape: Tape, future: Future[Lowered]) -> Lowered:
        """What the helper found, or what is found here if the helper failed or takes too long."""
        try:
            if not future.exception(PATIENCE_SECONDS):
                return future.result()
        except TooLate:
            pass
        return lowered(self._lower, tape)


def lowered(lower: Lower, tape: Tape) -> Lowered:
    """Lower a tape, and time it."""
    start = perf_counter()
    step = lower(tape)
    return Lowered(step, perf_counter() - start)


class _Helper:
    """A process that lowers one tape after the other."""

    def __init__(self, process: subprocess.Popen[bytes], answers: int, pool: ThreadPoolExecutor, lower: Lower) -> None:
        """answers: the descriptor on which the process answers. pool: of the thread that asks it."""
        self._process, self._pool, self._lower = process, pool, lower
        self._answers = os.fdopen(answers, "rb")
        self._asked = 0

    def submit(self, tape: Tape) -> Future[Lowered]:
        return self._pool.submit(self._ask, tape)

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._pool.shutdown()
        self._process.communicate()
        self._answers.close()

    def _ask(self, tape: Tape) -> Lowered:
        """Let the process lower a tape. If that fails, the process ends, and so does every later request."""
        assert self._process.stdin
        self._asked += 1
        try:
            pickle.dump((self._asked, self._lower, _portable(tape)), self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
            number, answer = pickle.load(self._answers)  # noqa: S301  (from a process that we started)
            if number != self._asked or not isinstance(answer, Lowered):
                raise pickle.UnpicklingError("the answer to another request")
        except BaseException:
            self._process.kill()
            raise
        return answer


def _helper(lower: Lower) -> Optional[_Helper]:
    """Start a helper. Return None if there is no second core, a helper would not be safe, or it does not start."""
    # A program that embeds Python may name itself as the executable.
    is_python = "py" in Path(sys.executable or "").name and not hasattr(sys, "frozen")
    # Where a broken pipe ends the process, a helper that dies would too.
    is_safe = os.name == "posix" and signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    if CORES == 1 or not is_python or not is_safe or _HELPS in os.environ:
        return None
    # The helper imports from where this process does, but from no folder that depends on the current one.
    entries: list[object] = [*sys.path]
    path = [entry for entry in entries if isinstance(entry, str) and os.path.isabs(entry)]  # noqa: PTH117
    path.append(str(Path(__file__).resolve().parents[2]))
    answers, theirs = os.pipe()
    pool = ThreadPoolExecutor(1)
    try:
        pool.submit(int)  # starts the thread, if another one can be started
        process = subprocess.Popen(  # noqa: S603  (our own executable)
            # Without `site`, which may run code that this process has not run.
            [sys.executable, "-I", "-S", "-B", "-c", _SERVE.format(path=path, answers=theirs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs],
            env={**os.environ, _HELPS: "1"},
        )
    except (OSError, ValueError, RuntimeError):
        pool.shutdown()
        os.close(answers)
        return None
    finally:
        os.close(theirs)
    return _Helper(process, answers, pool, lower)


def _portable(tape: Tape) -> Tape:
    """The tape with columns that can be pickled: some are views of memory in C."""
    return replace(tape, ops=bytes(tape.ops), left=_copy(tape.left), right=_copy(tape.right), index=_copy(tape.index))


def _copy(column: Column) -> array[int]:
    copy = array("i")
    copy.frombytes(column.tobytes())
    return copy


def serve(answers: int) -> None:
    """In a helper: lower what comes in, until there is no more. answers: the descriptor to answer on."""
    with COLLECTOR.paused(), os.fdopen(answers, "wb") as stream:
        while True:
            try:
                number, lower, tape = pickle.load(sys.stdin.buffer)  # noqa: S301  (from the process that started us)
            except EOFError:
                return
            pickle.dump((number, lowered(lower, tape)), stream, pickle.HIGHEST_PROTOCOL)
            stream.flush()
