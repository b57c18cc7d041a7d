"""Every way to run a `Value` program.

Workloads, training data and timing live in other packages; this one imports none of them.

`table` lists the engines, and `options` explains the options that a name may add, as in `rerolled-gcc+generic`. A file
from outside adds engines by defining `ENGINES` (`discovery`). A broken file is left out, and `problems` gives the
reason. Listing engines imports no third-party package: an engine imports what it needs in `check` or later.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Optional

from zoomgrad.engines import discovery
from zoomgrad.engines.api import NonFiniteLoss, Unavailable, UnknownName, WrongOption
from zoomgrad.engines.columns import Column
from zoomgrad.engines.discovery import ENGINE_FILES, Problem
from zoomgrad.engines.graph.arithmetic import ChangedArithmetic

if TYPE_CHECKING:
    from zoomgrad.engines.row import Row

__all__ = [
    "ChangedArithmetic",
    "Column",
    "NonFiniteLoss",
    "Problem",
    "Unavailable",
    "UnknownName",
    "WrongOption",
    "load",
    "names",
    "problems",
]


def names() -> tuple[str, ...]:
    """Names of all engines. Each comes after the engine it builds on."""
    return tuple(_discovered()[0])


def load(name: str) -> Row:
    """Return the engine with that name, even if this machine can't run it (see `Row.check`).

    Raises UnknownName, with the nearest names and the files that were left out, and WrongOption for an option that the
    engine does not take.
    """
    engines, left_out = _discovered()
    if name in engines:
        return engines[name]
    base, *options = name.split("+")
    if base not in engines:
        raise UnknownName("engine", name, engines, left_out=[str(problem) for problem in left_out])
    return engines[base].with_options(options)


def problems() -> tuple[Problem, ...]:
    """What was left out, and why: files that can't be imported, engines with invalid facts."""
    return _discovered()[1]


def _discovered() -> tuple[dict[str, Row], tuple[Problem, ...]]:
    return _of_files(os.environ.get(ENGINE_FILES))


@cache
def _of_files(_files: Optional[str]) -> tuple[dict[str, Row], tuple[Problem, ...]]:
    """All engines, with these files from outside."""
    from zoomgrad.engines import table  # now, because an import of this package must be quick

    return discovery.discover(table.ENGINES)
