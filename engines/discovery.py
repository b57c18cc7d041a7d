"""The table and files from outside -> engines, and what is wrong with the rest.

Anyone may name an engine's file. A broken one must not break the others, so it is left out and named. The facts of
each engine are checked here, once, because the harness plans with them and names files after them.

A worker runs in an environment without the user's packages. So an environment variable gives the worker the paths of
all files from outside, and it imports them from where they are. Workloads come from outside in the same way.
"""

from __future__ import annotations

import importlib
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from zoomgrad.engines.asking import one_line

if TYPE_CHECKING:
    from zoomgrad.engines.row import Row

NAME = re.compile(r"[A-Za-z0-9]+([._+-][A-Za-z0-9]+)*", re.ASCII)
"""A valid name of an engine or a workload. It becomes part of file names, where `--` separates the parts."""
MOST_CHARACTERS = 72
"""Equal to `results.fields.LONGEST_NAME`, which engines can't import."""
MOST_ROW_SECONDS = 3600.0
"""The largest valid estimate, so that the time of a plan is always finite."""

ENGINE_FILES, WORKLOAD_FILES = "ZOOMGRAD_ENGINE_FILES", "ZOOMGRAD_WORKLOAD_FILES"
"""Environment variables: paths, separated as in PATH."""


class Problem(NamedTuple):
    """A file or engine that was left out: the file, and the reason in one line."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def discover(table: Sequence[Row] = ()) -> tuple[dict[str, Row], tuple[Problem, ...]]:
    """The engines of the table and of files from outside, each after the one it builds on, and what was left out."""
    problems: list[Problem] = []
    engines: dict[str, Row] = {}
    places: dict[str, str] = {}
    others = ((where, module.ENGINES) for where, module in from_outside(ENGINE_FILES, "ENGINES", problems))
    for where, rows in chain([("engines/table.py", table)], others):
        if not isinstance(rows, (tuple, list)):
            problems.append(Problem(where, f"its ENGINES are not a tuple of engines: {type(rows).__name__}"))
            continue
        for engine in rows:
            wrong = flaw(engine)
            if not wrong and engine.name in engines:
                wrong = f"a second engine named {engine.name!r}; the first one is in {places[engine.name]}"
            elif not wrong and engine.builds_on not in ("", *engines):
                base = one_line(repr(engine.builds_on), 80)
                wrong = f"{engine.name} builds on {base}, and no engine before it has that name"
            if wrong:
                problems.append(Problem(where, wrong))
            else:
                engines[engine.name], places[engine.name] = engine, where
    # Peers come last, also behind engines from outside.
    return dict(sorted(engines.items(), key=lambda item: item[1].is_peer)), tuple(problems)


def is_name(name: Any) -> bool:
    """Whether an engine or a workload may have that name."""
    return isinstance(name, str) and len(name) <= MOST_CHARACTERS and bool(NAME.fullmatch(name))


def flaw(engine: Any) -> str:
    """Describe in one line what is wrong with the facts of an engine; empty if they are valid."""
    from zoomgrad.engines.row import Row  # imported here, so that importing this module is quick

    if not isinstance(engine, Row):
        return f"an object of {type(engine).__name__} is not an engine: it must be a Row, as in engines/table.py"
    facts = vars(engine)  # not its attributes, because a class from outside may make properties of them
    name, error_bound = facts.get("name"), facts.get("error_bound")
    if not is_name(name):
        shown = one_line(repr(name), 80)
        return f"{shown} is not an engine's name: use letters and digits, joined by single characters of `. _ + -`"
    for fact in ("idea", "builds_on", "environment"):
        if not isinstance(facts.get(fact), str):
            return f"{name}: its {fact} is not text"
    seconds = facts.get("typical_row_seconds")
    if not isinstance(seconds, tuple) or [_is_number(each, MOST_ROW_SECONDS) for each in seconds] != [True, True]:
        return f"{name}: its typical_row_seconds are not two numbers from 0 to {MOST_ROW_SECONDS:g}"
    if not (error_bound is None or _is_number(error_bound)):
        return f"{name}: its error bound is not a finite number of at least 0"
    return ""


def _is_number(value: Any, most: float = math.inf) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value) and 0 <= value <= most


def said(error: BaseException) -> str:
    """An exception in one line."""
    try:
        text = str(error)
    except Exception:  # an engine's own exception may do anything
        text = ""
    kind = type(error).__name__
    return one_line(f"{kind}: {text}" if text else kind)


def from_outside(variable: str, name: str, problems: list[Problem]) -> Iterator[tuple[str, ModuleType]]:
    """File and module for each file from outside that can be imported and defines that name."""
    for file in files(variable):
        where = one_line(file)
        try:
            module = _load(file)
        except (Exception, SystemExit) as error:
            problems.append(Problem(where, f"can't be imported: {said(error)}"))
            continue
        if hasattr(module, name):
            yield where, module
        else:
            problems.append(Problem(where, f"defines no {name}"))


def files(variable: str) -> list[str]:
    """Paths of the files."""
    return [file for file in os.environ.get(variable, "").split(os.pathsep) if file]


def add_files(variable: str, paths: Iterable[Path]) -> None:
    """Name more files, for this process and those that it starts."""
    if added := [*map(str, paths)]:
        os.environ[variable] = os.pathsep.join(dict.fromkeys([*files(variable), *added]))


def variables() -> dict[str, str]:
    """Environment variables that give a process the files of this one."""
    return {variable: os.pathsep.join(files(variable)) for variable in (ENGINE_FILES, WORKLOAD_FILES)}


def sources() -> list[Path]:
    """The files, or the folders of the packages that they lie in."""
    named = (_place(file) for variable in (ENGINE_FILES, WORKLOAD_FILES) for file in files(variable))
    return [folder / (names[0] if len(names) > 1 else f"{names[0]}.py") for folder, names in named]


def _load(file: str) -> ModuleType:
    """Import a file, as a module of its package if it lies in one. Raises whatever the file raises.

    A file that lies in no package is known by its path, so that it hides no module of its name.
    """
    folder, names = _place(file)
    if len(names) == 1:
        module = sys.modules[file] = ModuleType(file)
        module.__file__ = file
        # Not by a loader, which would write into the user's folder.
        exec(compile(Path(file).read_bytes(), file, "exec"), module.__dict__)  # noqa: S102  (the user names the file)
        return module
    sys.path.append(str(folder))  # last, because it may be another interpreter's site-packages
    try:
        module = importlib.import_module(".".join(names).removesuffix(".__init__"))
    finally:
        sys.path.remove(str(folder))
    if not Path(str(module.__file__)).samefile(file):
        raise ImportError(f"{module.__file__} has the same name")
    return module


def _place(file: str) -> tuple[Path, list[str]]:
    """The folder to import a file from, and the names of its packages and itself."""
    folder, names = Path(file).parent, [Path(file).stem]
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return folder, names
