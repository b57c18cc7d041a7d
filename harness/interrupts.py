"""Signals that end a command, such as Ctrl-C, and blocks of code that they must not interrupt."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

INTERRUPTS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def raise_on_interrupts() -> None:
    """Make each of INTERRUPTS raise KeyboardInterrupt, so that a command ends its workers and says how to resume."""
    for number in INTERRUPTS:
        # A background job of a shell ignores Ctrl-C, and a command under `nohup` ignores a hangup: keep that.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: object) -> None:
    # A second signal must not interrupt the clean-up. The new handler is a function because a second signal may have
    # arrived already: if Python then found SIG_IGN, it would print a traceback about the race.
    for each in INTERRUPTS:
        if callable(signal.getsignal(each)):
            signal.signal(each, _ignore)
    raise KeyboardInterrupt


def _ignore(number: int, frame: object) -> None:
    """Do nothing."""


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
