"""Run one command within limits, and end everything that it started, however the command ends.

While a worker is timing, the harness sleeps. The system wakes it when the worker ends, writes or runs out of time. The
harness counts processes rarely (`COUNTING_SECONDS`).
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

import psutil

from zoomgrad.engines.asking import end_group, lower_limits
from zoomgrad.harness.containment import descendants
from zoomgrad.harness.containment.limits import Limits
from zoomgrad.harness.interrupts import uninterrupted

TAIL_CHARACTERS = 1500
"""Length of the end of a worker's output that is kept."""

COUNTING_SECONDS = 10.0
"""Time between two counts of processes. A count scans all processes, which takes a few milliseconds."""


class Finished(NamedTuple):
    """How a command ended."""

    code: int | None
    """Exit code, negative for a signal; None if the command was ended at a limit."""
    output: str
    """End of the output of the command and its descendants."""
    limit: str = ""
    """Limit that was hit: `time`, `memory`, `output` or `processes`."""


def run(command: list[str], environment: dict[str, str], folder: str, limits: Limits) -> Finished:
    """Run the command in a new session in that folder, then end everything that it started.

    Call this from the main thread. The system kills a worker when the *thread* that started it ends.
    """
    descendants.adopt_orphans()
    known = descendants.children()
    process = None
    try:
        process = subprocess.Popen(  # noqa: S603  (a list of arguments, none of them read by a shell)
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # A new process group: Ctrl-C reaches only us, and pyperf's worker ends with its manager.
            start_new_session=True,
        )
        # Limit memory that can be written, because a library may reserve more address space than it uses. Never dump a
        # core. The limits are set from outside: code between fork and exec is unsafe in a process with threads.
        lower_limits(process.pid, CORE=0, DATA=limits.memory_bytes)
        assert process.stdout
        output = _Output(process.stdout, limits.output_bytes, process.kill)
        limit = _wait(process, limits)
    finally:
        with uninterrupted():
            end(process, known)
    text = output.text()
    limit = "output" if output.too_much else limit
    return Finished(None if limit else process.returncode, text, limit)


class _Output:
    """Output of a process, which a thread reads from a pipe. Keeps the end and limits the amount."""

    def __init__(self, pipe: IO[bytes], most_bytes: int, end: Callable[[], None]) -> None:
        self._pipe = pipe
        self._most_bytes = most_bytes
        self._end = end
        self._tail = b""
        self.too_much = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Return the last part of the output. Call it after the process has ended."""
        self._thread.join(descendants.ENDING_SECONDS)  # the thread reads until every process has closed the pipe
        text = self._tail.decode(errors="replace").strip()
        return text if len(text) <= TAIL_CHARACTERS else f"…{text[-TAIL_CHARACTERS:]}"

    def _read(self) -> None:
        total = 0
        with self._pipe:
            while chunk := os.read(self._pipe.fileno(), 1 << 16):
                total += len(chunk)
                self._tail = (self._tail + chunk)[-8 * TAIL_CHARACTERS :]  # in bytes: enough for any encoding
                if total > self._most_bytes and not self.too_much:
                    self.too_much = True
                    self._end()


def _wait(process: subprocess.Popen[bytes], limits: Limits) -> str:
    """Wait for the process to end, without reaping it. Return the limit that it hit first, or an empty string."""
    until = time.monotonic() + limits.timeout_seconds
    with _ending(process) as ends_within:
        while (left := until - time.monotonic()) > 0:
            if ends_within(min(left, COUNTING_SECONDS)):
                return ""
            if _count(process.pid) > limits.most_processes:
                return "processes"
    return "time"


@contextlib.contextmanager
def _ending(process: subprocess.Popen[bytes]) -> Iterator[Callable[[float], bool]]:
    """Yield `ends_within(seconds)`, which waits and returns whether the process ended.

    On Linux it sleeps until a pidfd becomes readable. Elsewhere it is `Popen.wait`, which polls 20 times a second.
    """
    try:
        if sys.platform != "linux":
            raise OSError
        file = os.pidfd_open(process.pid)  # Linux 5.3
    except OSError:
        yield lambda seconds: _waited(process, seconds)
        return
    try:
        poll = select.poll()
        poll.register(file, select.POLLIN)
        yield lambda seconds: bool(poll.poll(min(1000.0 * seconds + 1, 1e8)))
    finally:
        os.close(file)


def _waited(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _count(pid: int) -> int:
    try:
        return 1 + len(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return 0


def end(process: subprocess.Popen[Any] | None, known: set[int]) -> None:
    """Kill and reap a process that began a session, and everything that it started.

    known: children that the harness had before.
    """
    if process:
        end_group(process)
        process.wait()
        if sys.platform != "linux":
            descendants.end_session(process.pid)
    descendants.end_orphans(known)
