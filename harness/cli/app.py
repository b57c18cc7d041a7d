"""Shared by all commands: the Typer app, the two consoles, the exit codes, and how output names things."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console

from zoomgrad.results.printable import printable

app = typer.Typer(rich_markup_mode=None)
"""Contains the commands whose files have been imported."""
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

FAILED = 1
WRONG_USE = 2
INTERRUPTED = 130

Engine = Annotated[str, typer.Option("--engine", "-e", help="Engine to use; see `zoomgrad list`.")]
OnInterpreter = Annotated[
    Optional[str], typer.Option(help="Interpreter to use; see `zoomgrad list`. Default: the one that runs zoomgrad.")
]


def short(path: Path) -> str:
    """Path relative to the current folder if it is inside, else unchanged."""
    with contextlib.suppress(ValueError):
        return str(path.absolute().relative_to(Path.cwd()))
    return str(path)


def complain(text: str) -> None:
    """Print an error. It may quote file names and contents, so control characters are escaped."""
    with contextlib.suppress(OSError):  # standard error may be a file on a full disk
        err.print(f"zoomgrad: {printable(text)}", markup=False, soft_wrap=True)


def say_next(line: str) -> None:
    """Print the last line: what to do next."""
    out.print(printable(line), markup=False, soft_wrap=True)
