"""Signals that end a command, such as Ctrl-C."""

from __future__ import annotations

import atexit
import contextlib
import signal
import sys
import threading
from collections.abc import Iterator

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def raise_on_interrupts() -> None:
    """Make INTERRUPTS raise KeyboardInterrupt, so that a command ends its workers and prints how to resume."""
    for number in INTERRUPTS:
        # A shell's background job ignores Ctrl-C, and `nohup` ignores a hangup.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    sys.unraisablehook = _interrupt_again
    atexit.register(_ignore_to_the_end)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Delay an interrupt until the block ends: the pid of a process that is starting is not known yet."""
    arrived: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()  # no signal interrupts another thread
    numbers = [number for number in INTERRUPTS if is_main and signal.getsignal(number) is _interrupt]
    for each in numbers:
        signal.signal(each, lambda number, frame: arrived.append(number))
    try:
        yield
    finally:
        for each in numbers:
            signal.signal(each, _interrupt)
        for number in arrived[:1]:
            signal.raise_signal(number)


def _interrupt(number: int, frame: object) -> None:
    # A second signal must cut nothing short. Not SIG_IGN: if the signal has arrived already, Python prints a race.
    for each in INTERRUPTS:
        if callable(signal.getsignal(each)):
            signal.signal(each, lambda number, frame: None)
    raise KeyboardInterrupt


def _interrupt_again(dropped: sys.UnraisableHookArgs) -> None:
    """Interrupt again, a little later, if a destructor was running: Python drops the exceptions of destructors."""
    if dropped.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(dropped)
    elif numbers := [number for number in INTERRUPTS if callable(signal.getsignal(number))]:
        for number in numbers:
            signal.signal(number, _interrupt)
        threading.Timer(0.01, signal.pthread_kill, (threading.main_thread().ident, numbers[0])).start()


def _ignore_to_the_end() -> None:
    """Ignore the signals with SIG_IGN: the command is done, and Python drops its handlers before the process ends."""
    for each in INTERRUPTS:
        signal.signal(each, signal.SIG_IGN)
