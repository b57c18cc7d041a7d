"""The Typer app that commands register with, the exit codes, and options that are cheap to leave out."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

app = typer.Typer(rich_markup_mode=None)
"""Contains the commands whose files have been imported."""

FAILED = 1
WRONG_USE = 2
INTERRUPTED = 130


class _Option(TyperOption):
    """An option that skips Typer's conversion if it is left out.

    The conversion imports Pydantic, which takes a fifth of a second.
    """

    def process_value(self, ctx: Any, value: Any) -> Any:
        if value or self.required or not self.callback:
            return super().process_value(ctx, value)
        return self.callback(ctx, self, value)


class Command(TyperCommand):
    """A command whose options are all `_Option`s."""

    def get_params(self, ctx: Any) -> list[Any]:
        return with_late_options(super().get_params(ctx))


def with_late_options(parameters: list[Any]) -> list[Any]:
    """Turn every option among the parameters into an `_Option`."""
    for parameter in parameters:
        if isinstance(parameter, TyperOption):
            parameter.__class__ = _Option
    return parameters
