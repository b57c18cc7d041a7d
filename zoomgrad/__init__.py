"""zoomgrad as a library: one import for programs that compile and train graphs of Values.

`load` returns an engine by name. Its `Value` records a graph, its `nn` has networks of that Value, and its `compile`
returns a `Program`. The import is quick: engines are looked for when they are first named, and compilers and NumPy when
an engine needs them.

The names of this module are the public ones. `engines` implements them, and its interface may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zoomgrad import engines
from zoomgrad.engines import ChangedArithmetic, Column, NonFiniteLoss, Unavailable, UnknownName, WrongOption, names
from zoomgrad.engines.api import CyclicGraph

if TYPE_CHECKING:
    from zoomgrad.decorator import NotCompiled, compiled
    from zoomgrad.engines.graph.check import BrokenTape
    from zoomgrad.engines.graph.value import Value
    from zoomgrad.engines.kernel.building import BuildFailed
    from zoomgrad.engines.kernel.program import Program
    from zoomgrad.engines.row import Row as Engine
    from zoomgrad.signature import NotTraced

__all__ = [
    "BrokenTape",
    "BuildFailed",
    "ChangedArithmetic",
    "Column",
    "CyclicGraph",
    "Engine",
    "NonFiniteLoss",
    "NotCompiled",
    "NotTraced",
    "Program",
    "Unavailable",
    "UnknownName",
    "Value",
    "WrongOption",
    "compiled",
    "load",
    "names",
]


def _default() -> str:
    """The engine for a user who names none: `rerolled-machine` where it runs, which needs no compiler, else `tcc`."""
    from zoomgrad.engines.machine import target  # takes a while

    try:
        target.check()
    except Unavailable:
        return "tcc"
    return "rerolled-machine"


def load(name: str = "") -> Engine:
    """Return the engine of that name, one of `names()` or one with options, even if this machine can't run it.

    Its `check` raises Unavailable, with the remedy, if it can't. Without a name, it is the default one. Raises
    UnknownName and WrongOption.
    """
    return engines.load(name or _default())


_LATE = {
    "BrokenTape": "zoomgrad.engines.graph.check.BrokenTape",
    "BuildFailed": "zoomgrad.engines.kernel.building.BuildFailed",
    "Engine": "zoomgrad.engines.row.Row",
    "NotCompiled": "zoomgrad.decorator.NotCompiled",
    "NotTraced": "zoomgrad.signature.NotTraced",
    "Program": "zoomgrad.engines.kernel.program.Program",
    "compiled": "zoomgrad.decorator.compiled",
}
"""These are slow to import, and most programs don't need them."""


def __getattr__(name: str) -> Any:
    if name == "Value":
        # The class of a user who names no engine: in C, built by the first use, or in Python if there is no compiler.
        from zoomgrad.engines.native.build import recorder

        attribute = recorder()
    elif name in _LATE:
        module, _, inside = _LATE[name].rpartition(".")
        attribute = getattr(import_module(module), inside)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = attribute
    return attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
