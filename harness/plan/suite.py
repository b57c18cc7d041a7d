"""A suite's table in TOML -> options of `run` and `check`, and what the gate allows. docs/using.md shows one.

Separate from `cli.suites`, which most commands import: Pydantic is slow to import, and few commands have a suite.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from zoomgrad.results.compare import Limits
from zoomgrad.results.fields import Limit
from zoomgrad.results.files import Unreadable, first_of
from zoomgrad.results.record import Model

Text = Annotated[str, Field(pattern=r"^[^,\x00]*[^,\x00\s][^,\x00]*$")]
Names = Annotated[tuple[Text, ...], Field(min_length=1)]


class Suite(Model):
    """What a suite's file says. Except for `gate`, its keys are options, and paths are relative to its folder."""

    preset: Text = ""
    engines: Names = ()
    workloads: Names = ()
    interpreters: Names = ()
    blocks: Annotated[int, Field(ge=1, le=1000, strict=True)] = 1
    timeout: Annotated[Limit, Field(ge=1.0)] = 1.0
    engine_file: Names = ()
    workload_file: Names = ()
    against: Text = ""
    gate: Limits = Limits()


def suite_of(table: Any, file: Path) -> Suite:
    """Validate the table of that file. Raises Unreadable, which names the key."""
    try:
        return Suite.model_validate(_with_underscores(table))
    except ValidationError as error:
        keys = ", ".join(Suite.model_fields).replace("_", "-")
        raise Unreadable(f"{file}: {first_of(error)}\n  docs/using.md shows a suite. Its keys are {keys}.") from None


def _with_underscores(table: Any) -> Any:
    if not isinstance(table, dict):
        return table
    return {key.replace("-", "_"): _with_underscores(value) for key, value in table.items()}
