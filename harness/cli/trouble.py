"""What ended a command -> a line that names the place, the cause and what to do, and the exit code."""

from __future__ import annotations

import errno
import os
import sys

from pydantic import ValidationError

import datasets
from datasets.idx import CorruptData
from engines.api import Unavailable, UnknownName
from harness.cli.app import FAILED, WRONG_USE, complain
from harness.machine.environments import NoEnvironment
from harness.workloads.changes import WrongChange
from results.files import Unreadable, first_of

TOLD = (UnknownName, Unreadable, Unavailable, datasets.Unavailable, CorruptData, NoEnvironment, WrongChange)
"""Their texts are for users."""

SPACE = "All records so far are kept. Free some space, then `zoomgrad run --resume RUN` measures what is missing."
_REMEDIES = {
    errno.ENOSPC: SPACE,
    errno.EDQUOT: SPACE,
    errno.EFBIG: SPACE,
    errno.EROFS: "Keep runs elsewhere: set ZOOMGRAD_RUNS to a folder that can be written to.",
    errno.EACCES: "Give yourself access to it, or keep runs elsewhere: set ZOOMGRAD_RUNS.",
    errno.EPERM: "Give yourself access to it, or keep runs elsewhere: set ZOOMGRAD_RUNS.",
    errno.EIO: "The disk fails: save what is on it, then `zoomgrad run --resume RUN` on another.",
    errno.ENAMETOOLONG: "Keep runs in a folder with a shorter path: set ZOOMGRAD_RUNS.",
    errno.EMFILE: "Allow more open files: `ulimit -n 1024`.",
    errno.ENOMEM: "Free some memory, then try again.",
    errno.ENOTDIR: "Something else lies where a folder should be: move it away.",
    errno.EISDIR: "A folder lies where a file should be: move it away.",
    errno.ELOOP: "Its links lead in a circle: remove them.",
}


def tell(error: Exception) -> int | None:
    """Print what is wrong; gives the exit code, or None for a defect of ours, whose traceback is wanted."""
    if isinstance(error, BrokenPipeError):  # as of `zoomgrad list | head -1`
        let_go_of_output()
        return FAILED
    if isinstance(error, TOLD):
        complain(str(error))
        return WRONG_USE
    if isinstance(error, ValidationError):
        complain(f"{error.title}: {first_of(error)}\n  No record can hold that: choose another value.")
        return WRONG_USE
    if isinstance(error, OSError):
        complain(trouble(error))
        let_go_of_output()
        return FAILED
    return None


def trouble(error: OSError) -> str:
    """An error of the system in words."""
    where = f"{error.filename}: " if error.filename else ""
    remedy = _REMEDIES.get(error.errno or 0, "Check the path and its permissions, then try again.")
    return f"{where}{error.strerror or error}\n  {remedy}"


def let_go_of_output() -> None:
    """Write what is left of the output; where that fails, drop it, or Python would complain again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
