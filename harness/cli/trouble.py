"""What the system refuses -> one line that names the file, the cause and what to do."""

from __future__ import annotations

import errno
import os
import sys

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
