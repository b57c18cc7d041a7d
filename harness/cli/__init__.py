"""The command line. Each command is a file, and a straight line from its arguments to what it prints.

Exit 0: done, nothing failed (a skip with a reason is no failure); 1: a cell, a check or the disk failed; 2: wrong use;
130: interrupted, with the line that resumes. The last line always says what to do next.
"""

from __future__ import annotations

import io
import signal
import sys
from importlib import import_module

from pydantic import ValidationError

import datasets
from datasets.idx import CorruptData
from engines.api import Unavailable, UnknownName
from harness.cli.app import FAILED, WRONG_USE, app, complain
from harness.cli.trouble import let_go_of_output, trouble
from harness.containment.running import INTERRUPTS
from harness.interpreters import NoEnvironment
from results.files import Unreadable, first_of

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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that does not know `µ`
    for number in INTERRUPTS:
        # A shell's background job ignores Ctrl-C, and `nohup` a hangup.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    try:
        try:
            app()
        finally:
            if sys.stdout:
                sys.stdout.flush()  # at Python's own end a failure could not be told
    except BrokenPipeError:  # as of `zoomgrad list | head -1`
        let_go_of_output()
        sys.exit(FAILED)
    except (UnknownName, Unreadable, Unavailable, datasets.Unavailable, CorruptData, NoEnvironment) as error:
        complain(str(error))
        sys.exit(WRONG_USE)
    except ValidationError as error:
        complain(f"{error.title}: {first_of(error)}\n  No record can hold that: choose another value.")
        sys.exit(WRONG_USE)
    except OSError as error:
        complain(trouble(error))
        let_go_of_output()
        sys.exit(FAILED)


def _interrupt(number: int, frame: object) -> None:
    """End as Ctrl-C does: with the workers, and with the line that resumes. A second signal must not cut that short."""
    for each in INTERRUPTS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt
