"""`zoomgrad exec`: run a micrograd program unchanged, with its Value in C.

Without `--engine` and `--interpreter`, the program runs in the first process, and this file isn't even imported
(`execute.quickly`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from zoomgrad import engines
from zoomgrad.harness.cli.app import app
from zoomgrad.harness.cli.options import Interpreter, SomeEngine
from zoomgrad.harness.cli.preparing import run_worker

if TYPE_CHECKING:
    from zoomgrad.engines.row import Row


@app.command("exec", context_settings={"allow_interspersed_args": False})
def exec_(
    script: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The program or notebook to run.")],
    arguments: Annotated[Optional[list[str]], typer.Argument(metavar="ARG", help="Arguments of the program.")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the program's own class like Value as it is.")] = False,
    engine: SomeEngine = None,
    interpreter: Interpreter = None,
) -> None:
    """Run an unchanged micrograd program with its Value in C, if all results stay the same.

    If the program imports `micrograd` without bringing it, --engine provides it: by default `native`, or `hoisted`
    where `native` can't be built.
    """
    if engine is not None:
        typer.echo(_note(engines.load(engine)), err=True, nl=False)
    words = (engine or "", "keep" if keep else "", str(script), *(arguments or []))
    raise typer.Exit(run_worker(interpreter, "zoomgrad.harness.worker.programs.execute", *words))


def _note(engine: Row) -> str:
    """A line if the engine trains workloads in another way than it runs a program; empty for the others."""
    if engine.rebuilds:
        return ""
    does = "compiles" if engine.compiles else "replays"
    return (
        f"zoomgrad: {engine.name} {does} nothing under exec, because the program builds a graph for every step; "
        "leave out --engine for the fastest engine here\n"
    )
