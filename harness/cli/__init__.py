"""The command line. Each command is a file, and a straight line from its arguments to what it prints.

Exit 0: done, nothing failed (a skip with a reason is no failure); 1: a cell or a check failed; 2: wrong use;
130: interrupted, with the line that resumes. The last line always says what to do next.
"""

from __future__ import annotations

import signal
import sys
from importlib import import_module

import datasets
from datasets.idx import CorruptData
from engines.api import Unavailable, UnknownName
from harness.cli.app import WRONG_USE, app, err
from harness.containment.running import INTERRUPTS
from harness.interpreters import NoEnvironment
from results.store import Unreadable

COMMANDS = (
    "list",
    "doctor",
    "run",
    "check",
    "noise",
    "profile",
    "report",
    "history",
    "export",
    "train",
    "exec",
    "show",
)
"""In the order of `--help`."""

for command in COMMANDS:
    import_module(f"harness.cli.{command}")


def main() -> None:
    """Entry point of `zoomgrad`."""
    for number in INTERRUPTS:
        # A shell's background job ignores Ctrl-C, and `nohup` a hangup.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    try:
        app()
    except (UnknownName, Unreadable, Unavailable, datasets.Unavailable, CorruptData, NoEnvironment) as error:
        err.print(f"zoomgrad: {error}", markup=False, soft_wrap=True)
        sys.exit(WRONG_USE)


def _interrupt(number: int, frame: object) -> None:
    """End as Ctrl-C does: with the workers, and with the line that resumes. A second signal must not cut that short."""
    for each in INTERRUPTS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt
