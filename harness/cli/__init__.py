"""The command line `zoomgrad`: one file per command in `commands`, and what the commands share.

Planning, measuring and profiling are in the other packages of `harness`. A command's file is imported only when that
command runs, because some of them import pandas, which takes a second.

Exit codes: 0 done, and nothing failed (a skip with a reason is not a failure); 1 a cell, a check or the disk failed;
2 wrong use; 130 interrupted, with the command that resumes. The last line of output says what to do next.
"""

from __future__ import annotations

import io
import platform
import re
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from zoomgrad.harness.cli.app import Command, app, with_late_options
from zoomgrad.harness.interrupts import raise_on_interrupts

COMMANDS = (
    *("doctor", "list", "run", "report", "profile", "exec", "build", "show", "export", "history"),
    *("check", "compare"),
)
"""In the order of `--help`: as a new user needs them."""

OF_RECORDS = ("report", "export", "history")
"""Commands that read records and use no engine."""


class Commands(TyperGroup):
    """Group that imports a command's file only when the command runs."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, short_help=_first_line(name)) for name in COMMANDS}

    def get_params(self, ctx: Any) -> list[Any]:
        return with_late_options(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        command = load(str(name))
        import_module("zoomgrad.harness.machine.environments").use_clang()  # late, because `--help` needs no compiler
        return name, command, rest


def _first_line(name: str) -> str:
    """The first line of the command's help, read from its file, which is not imported for that."""
    text = (Path(__file__).parent / "commands" / f"{name}.py").read_text(encoding="utf-8")
    help_text = re.search(r'(?ms)^@app\.command.*?^    """(.+?)("""|$)', text)
    return help_text[1] if help_text else ""


def load(name: str) -> TyperCommand:
    """Import and return the command of that name."""
    import_module(f"zoomgrad.harness.cli.commands.{name}")  # registers the command
    command = get_group(app).commands[name]
    assert isinstance(command, TyperCommand)
    command.__class__ = Command
    if name not in OF_RECORDS:
        command.params[:0] = import_module("zoomgrad.harness.cli.suites").options()
    return command


# Plain text, because Typer's boxes take longer to import than everything else that `--help` needs.
command_line = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 120, "help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            version = metadata.version("zoomgrad")
        except metadata.PackageNotFoundError:
            version = "from a checkout that is not installed"
        typer.echo(f"zoomgrad {version}, on {platform.python_implementation()} {platform.python_version()}")
        raise typer.Exit


@command_line.callback()
def _describe(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Benchmark engines for scalar automatic differentiation: speed, compile time, and whether the answer is right."""


def main() -> None:
    """Entry point of `zoomgrad`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for a terminal whose encoding lacks `µ`
    raise_on_interrupts()
    try:
        try:
            command_line()
        finally:
            if sys.stdout:
                sys.stdout.flush()  # an error at Python's own flush, on exit, would come too late to report
    except Exception as error:
        from zoomgrad.harness.cli.trouble import print_error  # imports the exceptions of all packages

        code = print_error(error)
        if code is None:
            raise
        sys.exit(code)
