"""Exception that ended a command -> an error message with location, cause and remedy, and the exit code."""

from __future__ import annotations

import errno
import os
import sys

from pydantic import ValidationError

from zoomgrad import datasets
from zoomgrad.datasets.idx import CorruptData
from zoomgrad.engines.api import Unavailable, UnknownName
from zoomgrad.harness.cli.app import FAILED, WRONG_USE
from zoomgrad.harness.cli.console import complain
from zoomgrad.harness.machine.environments import NoEnvironment
from zoomgrad.harness.run.lock import Busy
from zoomgrad.results.files import Unreadable, first_of

KNOWN = (UnknownName, Unreadable, Unavailable, datasets.Unavailable, CorruptData, NoEnvironment, Busy)
"""Exceptions whose texts are written for users."""


_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "Free some space, then try again."),
    errno.ENOMEM: "Free some memory, then try again.",
}
_ACCESS = "Check the path and its permissions, or keep runs elsewhere: set ZOOMGRAD_RUNS."


def print_error(error: Exception) -> int | None:
    """Print the error and return the exit code; None for a defect of zoomgrad, whose traceback Python prints."""
    if isinstance(error, BrokenPipeError):  # for example from `zoomgrad list | head -1`
        let_go_of_output()
        return FAILED
    notes = getattr(error, "__notes__", ())
    if isinstance(error, KNOWN):
        complain("\n  ".join([str(error), *notes]))
        return WRONG_USE
    if isinstance(error, ValidationError):
        complain(f"{error.title}: {first_of(error)}\n  The value is out of range for a record: choose another.")
        return WRONG_USE
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        remedy = _REMEDIES.get(error.errno or 0, _ACCESS)
        complain(f"{where}{error.strerror or error}\n  {' '.join([remedy, *notes])}")
        let_go_of_output()
        return FAILED
    return None


def let_go_of_output() -> None:
    """Flush the output, or discard it if that fails; otherwise Python reports the failure again on exit."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
