"""Every way to run a `Value` program, discovered from the files of this package.

A module in a sub-package that defines `ENGINES` adds them, and one that defines `resolve(name)` adds all that its names
stand for; nothing lists an engine a second time. A file that is broken is left out, and `problems` says why. Listing
imports no third party: an engine imports what it needs in `check` or later.
"""

from __future__ import annotations

from functools import cache

from engines import discovery
from engines.api import Engine, NonFiniteLoss, Unavailable, UnknownName, WrongSuffix
from engines.arithmetic import ChangedArithmetic
from engines.columns import Column
from engines.discovery import Problem
from engines.suffixes import NONE, root

__all__ = [
    "ChangedArithmetic",
    "Column",
    "Engine",
    "NonFiniteLoss",
    "Problem",
    "Unavailable",
    "UnknownName",
    "WrongSuffix",
    "load",
    "names",
    "problems",
]


def names() -> tuple[str, ...]:
    """Names of all engines, each after the one that it builds on."""
    return tuple(_found().ladder)


def load(name: str) -> Engine:
    """The engine of that name, whether or not this machine can run it (`Engine.check` tells).

    Raises UnknownName, with the nearest names and the files that are left out; WrongSuffix for an engine with a suffix
    that it does not take.
    """
    found = _found()
    if name in found.ladder:
        return found.ladder[name]
    left_out = list(found.problems)
    engine = discovery.resolve(name, found.resolvers, left_out)
    if engine:
        return engine
    if not left_out:
        NONE.read(*root(name, found.ladder))
    raise UnknownName("engine", name, found.ladder, left_out=[str(problem) for problem in left_out])


def problems() -> tuple[Problem, ...]:
    """What is left out of the engines, and why: files that can't be imported, engines that can't be planned with."""
    return _found().problems


@cache
def _found() -> discovery.Found:
    return discovery.discover(__name__, list(__path__))
