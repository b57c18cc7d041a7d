"""Every way to run a `Value` program, discovered from the files of this package.

A module in a sub-package that defines `ENGINES` adds them, and one that defines `resolve(name)` adds all that its names
stand for; nothing lists an engine a second time. Listing imports no third party: an engine imports what it needs in
`check` or later.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Optional

from engines.api import Engine, NonFiniteLoss, Unavailable, UnknownName, WrongSuffix
from engines.arithmetic import ChangedArithmetic
from engines.columns import Column
from engines.suffixes import NONE, root

__all__ = [
    "ChangedArithmetic",
    "Column",
    "Engine",
    "NonFiniteLoss",
    "Unavailable",
    "UnknownName",
    "WrongSuffix",
    "load",
    "names",
]


def names() -> tuple[str, ...]:
    """Names of all engines, each after the one that it builds on."""
    return tuple(_ladder())


def load(name: str) -> Engine:
    """The engine of that name, whether or not this machine can run it (`Engine.check` tells).

    Raises UnknownName, with the nearest names; WrongSuffix for an engine with a suffix that it does not take.
    """
    engines = _ladder()
    if name in engines:
        return engines[name]
    for resolve in _resolvers():
        engine = resolve(name)
        if engine:
            return engine
    NONE.read(*root(name, engines))
    raise UnknownName("engine", name, engines)


@cache
def _ladder() -> dict[str, Engine]:
    found = _discover()

    def height(engine: Engine) -> int:
        return 1 + height(found[engine.builds_on]) if engine.builds_on else 0

    return {engine.name: engine for engine in sorted(found.values(), key=height)}


def _discover() -> dict[str, Engine]:
    found: dict[str, Engine] = {}
    for module in _modules():
        engines: tuple[Engine, ...] = getattr(module, "ENGINES", ())
        for engine in engines:
            if engine.name in found:
                raise ValueError(f"{module.__name__}: a second engine named {engine.name!r}")
            found[engine.name] = engine
    return found


@cache
def _resolvers() -> list[Callable[[str], Optional[Engine]]]:
    """What modules offer for names that follow a rule, as `clang-14-O1` does."""
    return [module.resolve for module in _modules() if hasattr(module, "resolve")]


def _modules() -> Iterator[ModuleType]:
    for family in pkgutil.iter_modules(__path__, prefix=f"{__name__}."):
        if family.ispkg:
            package = importlib.import_module(family.name)
            for module in pkgutil.iter_modules(package.__path__, prefix=f"{family.name}."):
                yield importlib.import_module(module.name)
