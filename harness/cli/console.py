"""The two consoles, and how output names things. Apart from `app`, because importing Rich takes a tenth of a second."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from zoomgrad.results.printable import printable

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def short(path: Path) -> str:
    """Path relative to the current folder if it is inside, else unchanged."""
    with contextlib.suppress(ValueError):
        return str(path.absolute().relative_to(Path.cwd()))
    return str(path)


def complain(text: str) -> None:
    """Print an error. It may quote file names and contents, so control characters are escaped."""
    with contextlib.suppress(OSError):  # standard error may be a file on a full disk
        err.print(f"zoomgrad: {printable(text)}", markup=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a line as it is: no markup, no wrapping, control characters escaped."""
    out.print(printable(text), markup=False, soft_wrap=True)


def say_next(line: str) -> None:
    """Print the last line: what to do next. `--quiet` keeps it."""
    hushed, out.quiet = out.quiet, False
    say(line)
    out.quiet = hushed


def say_json(content: Any) -> None:
    """Print the object of `--json` on standard output. Numbers that JSON lacks, such as NaN, become null."""
    from pydantic_core import to_json  # late: it takes as long to import as Rich

    sys.stdout.write(f"{to_json(content, indent=1, inf_nan_mode='null').decode()}\n")
