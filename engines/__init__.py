"""Every way to run a `Value` program, discovered from the files of this package.

A module in a sub-package that defines `ENGINES` adds them; nothing lists an engine a second time. Listing imports no
third party: an engine imports what it needs in `check` or later.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from engines.api import Engine, NonFiniteLoss, Unavailable, UnknownName

__all__ = ["Engine", "NonFiniteLoss", "Unavailable", "UnknownName", "load", "names"]


def names() -> tuple[str, ...]:
    """Names of all engines, each after the one that it builds on."""
    return tuple(_ladder())


def load(name: str) -> Engine:
    """The engine of that name, whether or not this machine can run it (`Engine.check` tells).

    Raises UnknownName, with the nearest names.
    """
    engines = _ladder()
    if name not in engines:
        raise UnknownName("engine", name, engines)
    return engines[name]


@cache
def _ladder() -> dict[str, Engine]:
    found = _discover()
    ordered: dict[str, Engine] = {}

    def place(engine: Engine) -> None:
        if engine.name in ordered:
            return
        if engine.builds_on:
            place(found[engine.builds_on])
        ordered[engine.name] = engine

    for engine in found.values():
        place(engine)
    return ordered


def _discover() -> dict[str, Engine]:
    found: dict[str, Engine] = {}
    for family in pkgutil.iter_modules(__path__, prefix=f"{__name__}."):
        if not family.ispkg:
            continue
        package = importlib.import_module(family.name)
        for module in pkgutil.iter_modules(package.__path__, prefix=f"{family.name}."):
            engines: tuple[Engine, ...] = getattr(importlib.import_module(module.name), "ENGINES", ())
            for engine in engines:
                if engine.name in found:
                    raise ValueError(f"{module.name}: a second engine named {engine.name!r}")
                found[engine.name] = engine
    return found
