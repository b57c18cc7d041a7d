"""A suite in TOML: options of `run` and `check` in a file, and what the gate allows. docs/using.md shows one.

Its values are the defaults of these options. Every command that uses engines takes a suite, and files with
engines and workloads.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from pydantic import Field, ValidationError
from typer.main import get_command

from zoomgrad import engines
from zoomgrad.engines.api import UnknownName
from zoomgrad.engines.discovery import ENGINE_FILES, WORKLOAD_FILES, add_files
from zoomgrad.harness import workloads
from zoomgrad.results.compare import Limits
from zoomgrad.results.fields import Limit
from zoomgrad.results.files import NotAsWritten, Unreadable, first_of, read_bytes
from zoomgrad.results.record import Model

PYPROJECT = "pyproject.toml"
"""Its table `[tool.zoomgrad]` is a suite."""
FILES = {"engine_file": ENGINE_FILES, "workload_file": WORKLOAD_FILES}
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


def read_suite(file: Path) -> Suite | None:
    """Read a suite; None for a pyproject.toml without one. Raises Unreadable, which names the key, and OSError."""
    try:
        text = read_bytes(file).decode()
        if file.name == PYPROJECT and "zoomgrad" not in text:
            return None  # whatever is wrong with a file of another program
        table: Any = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, NotAsWritten) as error:
        raise Unreadable(f"{file}: not valid TOML: {error}\n  Correct the file.") from None
    if file.name == PYPROJECT:
        tools = table.get("tool")
        table = tools.get("zoomgrad") if isinstance(tools, dict) else None
        if table is None:
            return None
    try:
        return Suite.model_validate(_with_underscores(table))
    except ValidationError as error:
        keys = ", ".join(Suite.model_fields).replace("_", "-")
        raise Unreadable(f"{file}: {first_of(error)}\n  docs/using.md shows a suite. Its keys are {keys}.") from None


def _with_underscores(table: Any) -> Any:
    if not isinstance(table, dict):
        return table
    return {key.replace("-", "_"): _with_underscores(value) for key, value in table.items()}


def _use_suite(context: typer.Context, named: Optional[Path]) -> None:
    """Read the suite, and make its values the defaults of options."""
    file = named or Path(PYPROJECT).absolute()
    suite = read_suite(file) if file.is_file() and not context.resilient_parsing else None
    if suite is None:
        return
    for key, variable in FILES.items():
        paths = [file.parent / path for path in getattr(suite, key)]
        if missing := next((path for path in paths if not path.is_file()), None):
            raise Unreadable(f"{file}: {missing}: no such file\n  Correct the path, which is relative to the suite.")
        add_files(variable, paths)
    for key, load in (("engines", engines.load), ("workloads", workloads.load)):
        for name in getattr(suite, key):
            try:
                load(name)
            except UnknownName as unknown:
                raise Unreadable(f"{file}: {key}: {unknown}") from None
    context.obj = file, suite
    if context.info_name in ("run", "check"):
        values = suite.model_dump(exclude_unset=True, exclude={"gate", *FILES})
        context.default_map = {name: list(one) if isinstance(one, tuple) else str(one) for name, one in values.items()}
        if suite.against:
            context.default_map["against"] = str(file.parent / suite.against)


def _add_files(parameter: typer.CallbackParam, paths: Optional[list[Path]]) -> None:
    add_files(FILES[str(parameter.name)], paths or ())


def _file(help_: str, **settings: Any) -> Any:
    return typer.Option(exists=True, dir_okay=False, resolve_path=True, help=help_, **settings)


def _declare(
    suite: Annotated[
        Optional[Path],
        _file(
            "Take engines, workloads, limits and more from this file. Default: [tool.zoomgrad] of pyproject.toml here.",
            metavar="FILE.toml",
            callback=_use_suite,
        ),
    ] = None,
    engine_file: Annotated[
        Optional[list[Path]],
        _file("Also use the engines of this file.", metavar="FILE.py", callback=_add_files, is_eager=True),
    ] = None,
    workload_file: Annotated[
        Optional[list[Path]],
        _file("Also use the workloads of this file.", metavar="FILE.py", callback=_add_files, is_eager=True),
    ] = None,
) -> None:
    """Declare the options. The suite comes first, before the options that it stands in for."""


def options() -> list[Any]:
    """Parameters to put first among a command's."""
    app = typer.Typer(add_completion=False)
    app.command(add_help_option=False)(_declare)
    parameters = get_command(app).params
    for parameter in parameters:
        parameter.expose_value = False
    return parameters
