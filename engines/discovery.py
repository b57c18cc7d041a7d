"""Files of this package -> the engines that they define, and what is wrong with those that are left out.

Engines are dropped in as files, and one that is broken must not take the others along: it is left out, and named.
What an engine says of itself is checked here, once, because the harness plans with it and names files after it.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Optional

from engines.api import Engine, UnknownName
from engines.asking import one_line

NAME = re.compile(r"[A-Za-z0-9]+([._+-][A-Za-z0-9]+)*", re.ASCII)
"""What an engine may be called: its name becomes a part of files' names, where `--` separates the parts."""
MOST_CHARACTERS = 72
"""As in `results.fields.LONGEST_NAME`, which engines can't import."""
MOST_ROW_SECONDS = 3600.0
"""A larger estimate is refused, so that a plan always has a finite time."""

Resolve = Callable[[str], Optional[Engine]]


class Problem(NamedTuple):
    """Something that is left out."""

    where: str
    """The file, from the folder of the project on."""
    what: str
    """In one line."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class Found(NamedTuple):
    """What the files of a package define."""

    ladder: dict[str, Engine]
    """Each engine after the one that it builds on."""
    resolvers: dict[str, Resolve]
    """File -> what it offers for names that follow a rule, as `clang-14-O1` does."""
    problems: tuple[Problem, ...]


def discover(package: str, path: Sequence[str]) -> Found:
    """The engines in the modules of the package's sub-packages."""
    problems: list[Problem] = []
    found: dict[str, tuple[str, Engine]] = {}
    resolvers: dict[str, Resolve] = {}
    for where, module in _modules(package, path, problems):
        if callable(getattr(module, "resolve", None)):
            resolvers[where] = module.resolve
        engines = getattr(module, "ENGINES", ())
        if not isinstance(engines, (tuple, list)):
            problems.append(Problem(where, f"its ENGINES are not a tuple of engines: {type(engines).__name__}"))
            continue
        for engine in engines:
            wrong = flaw(engine)
            if not wrong and engine.name in found:
                wrong = f"a second engine named {engine.name!r}; the first one is in {found[engine.name][0]}"
            if wrong:
                problems.append(Problem(where, wrong))
            else:
                found[engine.name] = where, engine
    return Found(_in_order(found, problems), resolvers, tuple(problems))


def flaw(engine: Any) -> str:
    """What is wrong with the facts of an engine, in one line; empty where all is well."""
    try:
        return _flaw(engine)
    except Exception as error:  # a property may do anything
        return f"an engine that can't say what it is ({said(error)})"


def _flaw(engine: Any) -> str:
    name = getattr(engine, "name", None)
    if not isinstance(name, str) or len(name) > MOST_CHARACTERS or not NAME.fullmatch(name):
        shown = one_line(repr(name), 80)
        return f"{shown} is not an engine's name: letters and digits, joined by single characters out of `. _ + -`"
    for fact in ("idea", "builds_on"):
        if not isinstance(getattr(engine, fact, None), str):
            return f"{name}: its {fact} is not text"
    for fact in ("strict", "native"):
        if not isinstance(getattr(engine, fact, None), bool):
            return f"{name}: its {fact} is neither True nor False"
    for fact in ("typical_row_seconds", "typical_compile_row_seconds"):
        if not _is_number(getattr(engine, fact, None), MOST_ROW_SECONDS):
            return f"{name}: its {fact} is not a number from 0 to {MOST_ROW_SECONDS:g}"
    if engine.strict != (engine.error_bound is None) or not (engine.strict or _is_number(engine.error_bound)):
        return f"{name}: an engine is strict, or has an error bound that is a finite number from 0 on"
    lacking = [method for method in ("check", "supports", "prepare") if not callable(getattr(engine, method, None))]
    return f"{name}: it has no {' and no '.join(lacking)}" if lacking else ""


def _is_number(value: Any, most: float = math.inf) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value) and 0 <= value <= most


def resolve(name: str, resolvers: dict[str, Resolve], problems: list[Problem]) -> Optional[Engine]:
    """The engine that a name stands for which follows a rule; None where there is none. Adds to the problems.

    Raises UnknownName where a rule knows the name and what is wrong with it, as with a WrongSuffix.
    """
    for where, rule in resolvers.items():
        try:
            engine = rule(name)
        except UnknownName:
            raise
        except Exception as error:
            problems.append(Problem(where, f"its resolve({name!r}) failed: {said(error)}"))
            continue
        if engine is None:
            continue
        wrong = flaw(engine) or (f"its resolve({name!r}) gives {engine.name}" if engine.name != name else "")
        if not wrong:
            return engine
        problems.append(Problem(where, wrong))
    return None


def _in_order(found: dict[str, tuple[str, Engine]], problems: list[Problem]) -> dict[str, Engine]:
    """Each engine after the one that it builds on; those that build on nothing that is there are left out."""
    ladder: dict[str, Engine] = {}
    waiting = dict(found)
    while waiting:
        step = {name: engine for name, (_, engine) in waiting.items() if engine.builds_on in ("", *ladder)}
        if not step:
            break
        ladder.update(step)
        waiting = {name: entry for name, entry in waiting.items() if name not in step}
    for where, engine in waiting.values():
        base = one_line(repr(engine.builds_on), 80)
        reason = "is part of a cycle or is itself left out" if engine.builds_on in waiting else "does not exist"
        problems.append(Problem(where, f"{engine.name} builds on {base}, which {reason}"))
    return ladder


def _modules(package: str, path: Sequence[str], problems: list[Problem]) -> Iterator[tuple[str, ModuleType]]:
    """The modules of all sub-packages with their files, but for those that can't be imported."""
    for family in pkgutil.iter_modules(path, prefix=f"{package}."):
        if not family.ispkg:
            continue
        imported = _import(family.name, path, problems)
        for module in pkgutil.iter_modules(imported.__path__, prefix=f"{family.name}.") if imported else ():
            found = _import(module.name, path, problems)
            if found:
                yield _where(module.name, path), found


def _import(name: str, path: Sequence[str], problems: list[Problem]) -> Optional[ModuleType]:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        problems.append(Problem(_where(name, path), f"can't be imported: {said(error)}"))
        return None


def _where(name: str, path: Sequence[str]) -> str:
    """A module's file, or a package's folder, as a user of the project's folder would type it."""
    file = "/".join(name.split("."))
    is_package = any((Path(folder).parent / file).is_dir() for folder in path)
    return one_line(file if is_package else f"{file}.py")


def said(error: BaseException) -> str:
    """An exception in one line."""
    try:
        text = str(error)
    except Exception:  # an engine's own exception may do anything
        text = ""
    kind = type(error).__name__
    return one_line(f"{kind}: {text}" if text else kind)
