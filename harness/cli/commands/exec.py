"""`zoomgrad exec`: run a micrograd program unchanged, with its Value in C.

Without `--engine` and `--interpreter`, the program runs in the first process, and this file isn't even imported
(`execute.quickly`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from zoomgrad.harness.cli.app import app
from zoomgrad.harness.cli.options import Interpreter, SomeEngine
from zoomgrad.harness.machine import environments, interpreters
from zoomgrad.harness.machine.project import with_project, worker_command


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
    words = (engine or "", "keep" if keep else "", str(script), *(arguments or []))
    python = Path(sys.executable)
    if interpreter:
        everything, (name,) = interpreters.asked([interpreter], interpreters.discover())
        python = environments.environment(interpreters.choose(name, everything))
    command = worker_command(python, "zoomgrad.harness.worker.programs.execute", *words)
    # The program replaces this process, so it receives the signals and sets the exit code.
    os.execve(command[0], command, with_project(os.environ))  # noqa: S606  (a list of arguments)
