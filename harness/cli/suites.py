"""The options that name a suite, and files with engines and workloads; every command that uses engines takes them.

The values of a suite are the defaults of options: `plan.suite` validates them.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from typer.main import get_command

from zoomgrad.engines.discovery import ENGINE_FILES, WORKLOAD_FILES, add_files
from zoomgrad.results.files import NotAsWritten, Unreadable, read_bytes

PYPROJECT = "pyproject.toml"
"""Its table `[tool.zoomgrad]` is a suite."""
FILES = {"engine_file": ENGINE_FILES, "workload_file": WORKLOAD_FILES}


def _use_suite(context: typer.Context, named: Optional[Path]) -> None:
    """Read the suite, and make its values the defaults of options."""
    file = named or Path(PYPROJECT).absolute()
    if context.resilient_parsing or (table := table_of(file)) is None:
        return
    from zoomgrad.harness.plan.suite import suite_of  # late, because Pydantic is slow to import

    suite = suite_of(table, file)
    for key, variable in FILES.items():
        paths = [file.parent / path for path in getattr(suite, key)]
        if missing := next((path for path in paths if not path.is_file()), None):
            raise Unreadable(f"{file}: {missing}: no such file\n  Correct the path, which is relative to the suite.")
        add_files(variable, paths)
    context.obj = file, suite
    if context.info_name in ("run", "check"):
        values = suite.model_dump(exclude_unset=True, exclude={"gate", *FILES})
        context.default_map = {name: list(one) if isinstance(one, tuple) else str(one) for name, one in values.items()}
        if suite.against:
            context.default_map["against"] = str(file.parent / suite.against)


def table_of(file: Path) -> Any:
    """The table of a suite: the whole file, or `[tool.zoomgrad]` of a pyproject.toml; None if there is none.

    Raises Unreadable, and OSError.
    """
    is_tool = file.name == PYPROJECT
    if is_tool and not file.is_file():
        return None
    try:
        content = read_bytes(file)
        if is_tool and b"zoomgrad" not in content:
            return None
        table: Any = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, NotAsWritten) as error:
        raise Unreadable(f"{file}: not valid TOML: {error}\n  Correct the file.") from None
    if not is_tool:
        return table
    tools = table.get("tool")
    return tools.get("zoomgrad") if isinstance(tools, dict) else None


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
