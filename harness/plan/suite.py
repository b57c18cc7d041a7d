"""A suite in TOML: what to race, and what the gate allows, for a project of one's own. docs/using.md shows one.

Every key is a row of `KEYS`: what it allows, and the function that reads it, which returns None for anything else.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from zoomgrad.engines.asking import one_line
from zoomgrad.results.files import NotAsWritten, Unreadable, read_bytes
from zoomgrad.results.run_file import SUFFIX

PYPROJECT = "pyproject.toml"
"""Its table `[tool.zoomgrad]` is a suite."""


class Key(NamedTuple):
    """What a key of the file allows."""

    allowed: str
    read: Callable[[Any, Path], Any]
    """(value, folder of the suite) -> the value in our terms; None if it is not allowed."""


def _name(value: Any, _folder: Path) -> str | None:
    return value if isinstance(value, str) and value.strip() and "," not in value else None


def _names(value: Any, folder: Path) -> list[str] | None:
    return value if isinstance(value, list) and value and all(_name(name, folder) for name in value) else None


def _path(value: Any, folder: Path) -> Path | None:
    return folder / value if isinstance(value, str) and value.strip() and "\0" not in value else None


def _run(value: Any, folder: Path) -> Path | None:
    return _path(value, folder) if str(value).endswith(SUFFIX) else None


def _files(value: Any, folder: Path) -> list[Path] | None:
    paths = [_path(name, folder) for name in value] if isinstance(value, list) else []
    files = [path for path in paths if path and path.suffix == ".py" and path.is_file()]
    return files if files and len(files) == len(paths) else None


def _number(least: float, most: float = math.inf, kind: type = float) -> Callable[[Any, Path], Any]:
    def read(value: Any, _folder: Path) -> Any:
        is_number = isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
        return kind(value) if is_number and least <= value <= most and math.isfinite(value) else None

    return read


LEAST = 1e-6
"""The smallest limit of the gate, because a share of 0 would allow nothing."""
NAMES = Key("a list of names that `zoomgrad list` prints", _names)
FILES = Key("a list of .py files that exist, relative to the suite's folder", _files)
KEYS = {
    "preset": Key("the name of a preset, as `zoomgrad list` prints it", _name),
    "engines": NAMES,
    "workloads": NAMES,
    "interpreters": NAMES,
    "blocks": Key("a whole number from 1 to 1000", _number(1, 1000, int)),
    "time-limit": Key("the seconds that a worker may take, at least 1", _number(1)),
    "engine-files": FILES,
    "workload-files": FILES,
    "baseline-run": Key(f"a file's path that ends with {SUFFIX}, relative to the suite's folder", _run),
    "gate": Key("a table", lambda value, _: value if isinstance(value, dict) else None),
}
GATE = {
    "slowdown": Key("a share from 0.000001 to 100, such as 0.10", _number(LEAST, 100)),
    "compile-growth": Key("a share from 0.000001 to 100, such as 0.50", _number(LEAST, 100)),
    "elsewhere": Key("a factor of at least 1, such as 5", _number(1)),
    "reruns": Key("a whole number from 0 to 10", _number(0, 10, int)),
}


class Suite(NamedTuple):
    """What a suite's file says."""

    file: Path
    values: Mapping[str, Any]
    """Values of the keys that the file has."""
    limits: Mapping[str, Any]
    """Fields of the gate's Limits that the file has."""


def read_suite(file: Path) -> Suite | None:
    """Read a suite; None for a pyproject.toml without one. Raises Unreadable, which names the key, and OSError."""
    table: Any
    try:
        text = read_bytes(file).decode()
        if file.name == PYPROJECT and "zoomgrad" not in text:
            return None  # whatever is wrong with a file of another program
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, NotAsWritten) as error:
        raise Unreadable(f"{file}: not valid TOML: {error}\n  Correct the file.") from None
    if file.name == PYPROJECT:
        tools = table.get("tool")
        table = tools.get("zoomgrad") if isinstance(tools, dict) else None
        if table is None:
            return None
        if not isinstance(table, dict):
            raise Unreadable(f"{file}: tool.zoomgrad is not a table\n  Write it as [tool.zoomgrad].")
    values = _checked(file, "", table, KEYS)
    limits = _checked(file, "gate.", values.pop("gate", {}), GATE)
    return Suite(file, values, {name.replace("-", "_"): value for name, value in limits.items()})


def _checked(file: Path, prefix: str, table: Mapping[str, Any], keys: Mapping[str, Key]) -> dict[str, Any]:
    """Values of the table, each as its key reads it. Raises Unreadable."""
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in keys:
            raise Unreadable(f"{file}: there is no key {prefix}{one_line(name, 80)}\n  Allowed: {', '.join(keys)}.")
        values[name] = keys[name].read(value, file.parent)
        if values[name] is None:
            shown = one_line(json.dumps(value, default=str, ensure_ascii=False), 80)
            raise Unreadable(f"{file}: {prefix}{name} = {shown}\n  Allowed: {keys[name].allowed}.")
    return values
