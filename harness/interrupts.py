"""Signals that end a command, such as Ctrl-C."""

from __future__ import annotations

import atexit
import signal

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
    """Ignore the signals without Python, which drops its functions before the process ends: the command is done."""
    for each in INTERRUPTS:
        signal.signal(each, signal.SIG_IGN)
