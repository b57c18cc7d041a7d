"""The Typer app that commands register with, and the exit codes."""

from __future__ import annotations

import typer

app = typer.Typer(rich_markup_mode=None)
"""Contains the commands whose files have been imported."""

FAILED = 1
WRONG_USE = 2
INTERRUPTED = 130
