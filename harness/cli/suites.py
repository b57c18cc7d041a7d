"""Options of every command that uses engines: a suite, and files with engines and workloads.

A suite's values are the defaults of options of `run` and `check`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from typer.main import get_command

from zoomgrad import engines
from zoomgrad.engines.api import UnknownName
from zoomgrad.engines.discovery import ENGINE_FILES, WORKLOAD_FILES, add_files
from zoomgrad.harness import workloads
from zoomgrad.harness.plan.suite import PYPROJECT, read_suite
from zoomgrad.results.files import Unreadable

OPTIONS = {"time-limit": "timeout", "baseline-run": "against"}
"""Key of a suite -> the parameter of `run` and `check`, if their names differ."""
FILES = {"engine-files": ENGINE_FILES, "workload-files": WORKLOAD_FILES}


def _add_files(parameter: typer.CallbackParam, paths: Optional[list[Path]]) -> None:
    add_files(FILES[f"{str(parameter.name).replace('_', '-')}s"], paths or ())


def _use_suite(context: typer.Context, named: Optional[Path]) -> None:
    """Read the suite, and make its values the defaults of options."""
    file = named or Path(PYPROJECT).absolute()
    suite = read_suite(file) if file.is_file() and not context.resilient_parsing else None
    if suite is None:
        return
    for key, variable in FILES.items():
        add_files(variable, suite.values.get(key, ()))
    for key, load in (("engines", engines.load), ("workloads", workloads.load)):
        for name in suite.values.get(key, ()):
            try:
                load(name)
            except UnknownName as unknown:
                raise Unreadable(f"{file}: {key}: {unknown}") from None
    context.obj = suite
    if context.info_name in ("run", "check"):
        context.default_map = {
            OPTIONS.get(key, key): value if isinstance(value, list) else str(value)
            for key, value in suite.values.items()
        }


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
