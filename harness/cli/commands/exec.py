"""`zoomgrad exec`: run a micrograd program in a worker whose `micrograd` is an engine's."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Annotated, Optional

import typer

from zoomgrad import engines
from zoomgrad.engines.api import Engine
from zoomgrad.harness.cli.app import INTERRUPTED, OnInterpreter, app
from zoomgrad.harness.cli.preparing import python_of, with_project
from zoomgrad.harness.machine.project import worker_command


@app.command("exec", context_settings={"allow_interspersed_args": False})
def exec_(
    script: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The program or notebook to run.")],
    arguments: Annotated[Optional[list[str]], typer.Argument(metavar="ARG", help="Arguments of the program.")] = None,
    engine: Annotated[
        Optional[str],
        typer.Option(
            "--engine",
            "-e",
            help="Engine to use; see `zoomgrad list`.",
            show_default="native, or hoisted where native can't be built",
        ),
    ] = None,
    replace: Annotated[
        str, typer.Option(metavar="CLASS", help="Replace this class of the program with the engine's Value.")
    ] = "",
    interpreter: OnInterpreter = None,
) -> None:
    """Run an unchanged micrograd program on an engine that replaces its `micrograd`."""
    if engine is not None:
        typer.echo(_note(engines.load(engine)), err=True, nl=False)
    told = [engine or "", replace, str(script), *(arguments or [])]
    command = worker_command(python_of(interpreter), "zoomgrad.harness.worker.programs.execute", *told)
    try:
        code = subprocess.run(command, env=with_project(), check=False).returncode  # noqa: S603  (a list)
    except KeyboardInterrupt:
        code = INTERRUPTED
    # A shell also reports death by a signal as 128 + signal.
    raise typer.Exit(128 - code if code < 0 else code)


def _note(engine: Engine) -> str:
    """A line if the engine trains workloads in another way than it runs a program; empty for the others."""
    if getattr(engine, "rebuilds", True):
        return ""
    does = "compiles" if hasattr(engine, "compile") else "replays"
    return (
        f"zoomgrad: {engine.name} {does} nothing under exec, because the program builds a graph for every step; "
        "leave out --engine for the fastest engine here\n"
    )
