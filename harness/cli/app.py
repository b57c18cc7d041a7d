"""What every command shares: the application, its two consoles, its exit codes, and how it names things."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console

from engines.api import UnknownName
from results.fields import printable
from results.store import RUNS, Store

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="How fast can the same micrograd Value program run, at what compile cost, and is the answer still right?",
)
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

FAILED = 1
WRONG_USE = 2
INTERRUPTED = 130

Engine = Annotated[str, typer.Option("--engine", "-e", help="Name of an engine, as `zoomgrad list` shows them.")]
OnInterpreter = Annotated[
    Optional[str], typer.Option(help="Name of an interpreter; the one that runs zoomgrad unless told.")
]


def names(text: Optional[str]) -> list[str]:
    """The names in an option that takes several, separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def store_of(run: str) -> Store:
    """The run of that id, or in that folder. Raises UnknownName."""
    folder = Path(run) if Path(run).is_dir() else RUNS / run
    if not (folder / "run.json").is_file():
        raise UnknownName("run", run, [path.parent.name for path in RUNS.glob("*/run.json")])
    return Store(folder)


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
