"""Signals that end a command, such as Ctrl-C, and blocks of code that they must not interrupt."""

from __future__ import annotations

import atexit
import contextlib
import signal
import threading
from collections.abc import Iterator

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def raise_on_interrupts() -> None:
    """Let each of them raise KeyboardInterrupt, so that a command ends its workers and prints how to resume."""
    for number in INTERRUPTS:
        # A shell's background job ignores Ctrl-C, and `nohup` ignores a hangup.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    atexit.register(_ignore_to_the_end)


def _interrupt(number: int, frame: object) -> None:
    # A second signal must not cut short what the first one began. It may have arrived already: Python then calls its
    # function next, and prints a traceback about the race if it finds SIG_IGN instead.
    for each in INTERRUPTS:
        if callable(signal.getsignal(each)):
            signal.signal(each, _ignore)
    raise KeyboardInterrupt


def _ignore(number: int, frame: object) -> None:
    """Do nothing."""


def _ignore_to_the_end() -> None:
    """Ignore the signals without Python, which drops its functions before the process ends: the command is done.

    They are blocked meanwhile, so none can arrive between the call of its function and the change.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    for each in INTERRUPTS:
        if callable(signal.getsignal(each)):
            signal.signal(each, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay interrupts until the block has ended."""
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
