"""Every way to run a `Value` program, discovered from the files of this package.

Workloads, training data and timing live in other packages; this one imports none of them.

A module in a sub-package adds engines by defining `ENGINES`, or `resolve(name)` for names that follow a rule. So does a
file from outside (`discovery`). There is no other list of engines. A broken file is left out, and `problems` gives the
reason. Listing engines imports no third-party package: an engine imports what it needs in `check` or later.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Optional

from zoomgrad.engines import discovery
from zoomgrad.engines.api import Engine, NonFiniteLoss, Unavailable, UnknownName, WrongSuffix
from zoomgrad.engines.arithmetic import ChangedArithmetic
from zoomgrad.engines.columns import Column
from zoomgrad.engines.discovery import ENGINE_FILES, Problem
from zoomgrad.engines.suffixes import NONE, root

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
    """Names of all engines. Each comes after the engine it builds on."""
    return tuple(_found().ladder)


def load(name: str) -> Engine:
    """Return the engine with that name, even if this machine can't run it (see `Engine.check`).

    Raises UnknownName, with the nearest names and the files that were left out, and WrongSuffix for a suffix that the
    engine does not take.
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
    """What was left out, and why: files that can't be imported, engines with invalid facts."""
    return _found().problems


def _found() -> discovery.Found:
    return _discovered(os.environ.get(ENGINE_FILES))


@cache
def _discovered(_files: Optional[str]) -> discovery.Found:
    """What was found with these files from outside."""
    return discovery.discover(__name__, list(__path__))
