"""The command line. Each command is a file, and a straight line from its arguments to what it prints.

A command's file is imported when that command is asked for: all of them import pandas and matplotlib, for a second.

Exit 0: done, nothing failed (a skip with a reason is no failure); 1: a cell, a check or the disk failed; 2: wrong use;
130: interrupted, with the line that resumes. The last line always says what to do next.
"""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from harness.interrupts import raise_on_interrupts

COMMANDS = {
    "list": "The engines, workloads, interpreters and presets there are.",
    "doctor": "What is installed, what is missing, and how to get it.",
    "run": "Measure cells in fresh processes; ends with the headline table and the report.",
    "check": (
        "Fail if a speedup regressed against the baseline run, a result is wrong or missing, or compiling takes longer."
    ),
    "noise": (
        "Measure this machine's noise floor: the same run several times, for the gate to know what a change is worth."
    ),
    "profile": "Show where time and memory go: by stage of a step, by line (Scalene), by function (perf), over time.",
    "report": "Build the first run's report again, from records alone; other runs' speedups stand beside its own.",
    "history": "Show how speedups went from run to run, with their changes marked, machine by machine.",
    "export": "Write a run in another tool's format, from its records alone.",
    "train": "Train by hand: live loss and accuracy, until a tolerance, repeated over seeds for a distribution.",
    "exec": "Run a micrograd program, unchanged, on an engine: its `micrograd` is that engine.",
    "build": "Make a Python module, or C, of a workload or a script: it needs nothing of zoomgrad.",
    "show": "Print one step of a workload as the engine sees it, after a stage.",
}
"""Name -> the first line of its function's docstring, in the order of `--help`."""


class Commands(TyperGroup):
    """A group that imports a command's file once that command is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, short_help=line) for name, line in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, load(str(name)), rest


def load(name: str) -> TyperCommand:
    """The command of that name, with its options and its function."""
    import_module(f"harness.cli.commands.{name}")
    from harness.cli.app import app  # the file has just registered itself there

    command = get_group(app).commands[name]
    assert isinstance(command, TyperCommand)
    return command


# Plain text: Typer's boxes take longer to import than everything else that `--help` needs.
command_line = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 120},
)


@command_line.callback()
def _describe() -> None:
    """How fast can the same micrograd Value program run, at what compile cost, and is the answer still right?"""


def main() -> None:
    """Entry point of `zoomgrad`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that does not know `µ`
    raise_on_interrupts()
    try:
        try:
            command_line()
        finally:
            if sys.stdout:
                sys.stdout.flush()  # at Python's own end a failure could not be told
    except Exception as error:
        from harness.cli.trouble import tell  # here: it knows the exceptions of all packages

        code = tell(error)
        if code is None:
            raise
        sys.exit(code)
