"""What every command shares: where it registers, its two consoles, its exit codes, and how it names things."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console

from results.printable import printable

app = typer.Typer(rich_markup_mode=None)
"""Holds the commands whose files were imported."""
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

FAILED = 1
WRONG_USE = 2
INTERRUPTED = 130

Engine = Annotated[str, typer.Option("--engine", "-e", help="Name of an engine, as `zoomgrad list` shows them.")]
OnInterpreter = Annotated[
    Optional[str], typer.Option(help="Name of an interpreter; the one that runs zoomgrad unless told.")
]


def short(path: Path) -> str:
    """The path as a user of this folder would type it."""
    with contextlib.suppress(ValueError):
        return str(path.absolute().relative_to(Path.cwd()))
    return str(path)


def complain(text: str) -> None:
    """Print what is wrong. It may quote names of files and their content: nothing of it reaches the terminal raw."""
    with contextlib.suppress(OSError):  # standard error may be on the disk that is full
        err.print(f"zoomgrad: {printable(text)}", markup=False, soft_wrap=True)


def say_next(line: str) -> None:
    """Print the last line: what to do next."""
    out.print(printable(line), markup=False, soft_wrap=True)
