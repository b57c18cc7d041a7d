"""Ctrl-C and its like: the signals that end a command, and a block that they must not cut short."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

INTERRUPTS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def raise_on_interrupts() -> None:
    """Have each of them raise KeyboardInterrupt, so that a command ends with its workers and says how to resume."""
    for number in INTERRUPTS:
        # A shell's background job ignores Ctrl-C, and `nohup` a hangup.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: object) -> None:
    # A second signal must not cut short what the first one began. It may have arrived already: Python then finds
    # SIG_IGN where it expects a function, and prints a traceback about the race.
    for each in INTERRUPTS:
        if callable(signal.getsignal(each)):
            signal.signal(each, _ignore)
    raise KeyboardInterrupt


def _ignore(number: int, frame: object) -> None:
    """Do nothing."""


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
