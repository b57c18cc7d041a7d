"""Signals that end a command, such as Ctrl-C, and blocks of code that they must not interrupt."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

INTERRUPTS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def raise_on_interrupts() -> None:
    """Let each of them raise KeyboardInterrupt, so that a command ends its workers and prints how to resume."""
    for number in INTERRUPTS:
        # A shell's background job ignores Ctrl-C, and `nohup` ignores a hangup.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: object) -> None:
    # A second signal must not cut short what the first one began. It may have arrived already: Python then calls its
    # function next, and prints a traceback about the race if it finds SIG_IGN instead.
    for each in INTERRUPTS:
        if callable(signal.getsignal(each)):
            signal.signal(each, lambda number, frame: None)
    raise KeyboardInterrupt


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay interrupts until the block has ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    handlers = {number: handler for number in INTERRUPTS if callable(handler := signal.getsignal(number))}
    for number in handlers:
        signal.signal(number, lambda number, frame: arrived.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if arrived:
            signal.raise_signal(arrived[0])
