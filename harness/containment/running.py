"""Runs one command within limits, and ends everything that it started, however the command ends.

While a worker times, the harness sleeps: the system wakes it when the worker ends, writes or is out of time. Only where
nothing else limits the number of processes does it count them, as rarely as `COUNTING_SECONDS` says.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

import psutil

from engines.asking import end_group, lower_limits
from harness.containment import cgroup, descendants
from harness.containment.limits import Limits

TAIL_CHARACTERS = 1500
"""What is kept of the end of a worker's output."""

COUNTING_SECONDS, SCANNING_SECONDS = 1.0, 10.0
"""Between two counts of processes: the members of a cgroup are one read of about 40 µs, but the descendants without one
are a scan of all processes, a few milliseconds. Either way it is less than a thousandth of the time."""

INTERRUPTS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Finished(NamedTuple):
    """How a command ended."""

    code: int | None
    """Its exit code, negative for a signal; None where it was ended at a limit."""
    output: str
    """The end of what it and its descendants wrote."""
    limit: str = ""
    """The limit that was hit: `time`, `memory`, `output` or `processes`."""


def run(command: list[str], environment: dict[str, str], folder: str, limits: Limits) -> Finished:
    """Run in a session of its own, in that folder, and end all that it started.

    Call it from a thread that lives as long as the harness, which the main thread does: the system kills a worker when
    the *thread* that started it ends.
    """
    descendants.adopt_orphans()
    known = descendants.children()
    group = cgroup.make()
    process = None
    try:
        if group:
            group.limit(limits.memory_bytes, limits.most_processes)
        process = subprocess.Popen(  # noqa: S603  (a list of arguments, none of them read by a shell)
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # A group of its own: Ctrl-C reaches us alone, and pyperf's worker ends with its manager.
            start_new_session=True,
        )
        # From outside, at once: code between fork and exec would not be safe beside our threads, and an interpreter
        # needs milliseconds until it can start anything.
        if group:
            group.add(process.pid)
        # Its address space is limited only where nothing else limits its memory. No core is dumped.
        address_space = {} if group and group.limits_memory else {"AS": limits.memory_bytes}
        lower_limits(process.pid, CORE=0, **address_space)
        assert process.stdout
        output = _Output(process.stdout, limits.output_bytes, process.kill)
        limit = _wait(process, group, limits)
    finally:
        with uninterrupted():
            hit = group.limit_hit if group else ""
            end(process, known, group)
    text = output.text()
    limit = "output" if output.too_much else limit or hit
    # A limit of processes makes a fork fail, which a worker may survive: then its own answer counts.
    code = None if limit and limit != hit else process.returncode
    return Finished(code, text, limit)


class _Output:
    """What a process writes into a pipe, read by a thread: its end is kept, and its amount is limited."""

    def __init__(self, pipe: IO[bytes], most_bytes: int, end: Callable[[], None]) -> None:
        self._pipe = pipe
        self._most_bytes = most_bytes
        self._end = end
        self._tail = b""
        self.too_much = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def text(self) -> str:
        """The end of it, once the process has ended."""
        self._thread.join(descendants.ENDING_SECONDS)  # as long as anybody has the pipe
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


def _wait(process: subprocess.Popen[bytes], group: cgroup.Group | None, limits: Limits) -> str:
    """Wait for its end, and leave it for somebody else to reap; gives the limit that it hit first, or nothing."""
    until = time.monotonic() + limits.timeout_seconds
    counts = not (group and group.limits_processes)
    interval = (COUNTING_SECONDS if group else SCANNING_SECONDS) if counts else limits.timeout_seconds
    with _ending(process) as ends_within:
        while True:
            left = until - time.monotonic()
            if left <= 0:
                return "time"
            if ends_within(min(left, interval)):
                return ""
            if counts and _count(process.pid, group) > limits.most_processes:
                return "processes"


@contextlib.contextmanager
def _ending(process: subprocess.Popen[bytes]) -> Iterator[Callable[[float], bool]]:
    """`ends_within(seconds)`: whether the process does. On Linux that sleeps; elsewhere Python looks 20 times a second.

    `Popen.wait` with a timeout would do the latter on Linux too.
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


def _count(pid: int, group: cgroup.Group | None) -> int:
    if group:
        return group.size()
    try:
        return 1 + len(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return 0


def end(process: subprocess.Popen[Any] | None, known: set[int], group: cgroup.Group | None = None) -> None:
    """Kill and reap a process that began a session, and all that it started.

    known: children of the harness that were there before it.
    """
    if process:
        end_group(process)
    if group:
        group.end()
    if process:
        process.wait()
        if sys.platform != "linux":
            descendants.end_session(process.pid)
    descendants.end_orphans(known)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C and its like wait until the block has ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    handlers = {number: signal.getsignal(number) for number in INTERRUPTS}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda number, frame: arrived.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if arrived:
            signal.raise_signal(arrived[0])
