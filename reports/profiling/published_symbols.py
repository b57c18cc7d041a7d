"""What perf showed in "Compiling ML models to C for fun", as data: baseline on mnist, CPython 3.10, down to 0.5 %."""

from __future__ import annotations

from typing import NamedTuple

SOURCE = "138,000 samples of cycles, CPython 3.10 as Ubuntu builds it"
CUT = 0.005
"""Shares below it are not in the table."""


class PublishedSymbol(NamedTuple):
    """A row of the published table; `of_collector` is ours: whether the function belongs to the garbage collector."""

    name: str
    share: float
    of_collector: bool


PUBLISHED = (
    PublishedSymbol("gc_collect_main", 0.3741, True),
    PublishedSymbol("deduce_unreachable", 0.2785, True),
    PublishedSymbol("visit_reachable", 0.0991, True),
    PublishedSymbol("set_traverse", 0.0358, True),
    PublishedSymbol("dict_traverse", 0.0329, True),
    PublishedSymbol("_PyEval_EvalFrameDefault", 0.0265, False),
    PublishedSymbol("func_traverse", 0.0204, True),
    PublishedSymbol("subtype_traverse", 0.0167, True),
    PublishedSymbol("tupletraverse", 0.0116, True),
    PublishedSymbol("_PyObject_GenericSetAttrWithDict", 0.0073, False),
    PublishedSymbol("cell_traverse", 0.0054, True),
    PublishedSymbol("insertdict", 0.0052, False),
)
COLLECTING = ("gc_collect_main", "deduce_unreachable", "visit_reachable")
"""Those that lead the table: the collector itself, without the functions that walk one type's objects."""
COLLECTOR_TOTAL = sum(symbol.share for symbol in PUBLISHED if symbol.of_collector)
FORMER_NAMES = {"gc_collect_main": ("collect",)}
"""Function -> its names in older interpreters."""
INLINED = ("visit_decref",)
"""Functions of the collector that every collection calls, and that the published build nevertheless does not show."""


def published_share(name: str) -> float:
    """Of a function; 0 where the table does not have it."""
    return next((symbol.share for symbol in PUBLISHED if symbol.name == name), 0.0)


def plain(symbol: str) -> str:
    """Without what a compiler appends to a copy: `dict_traverse.lto_priv.0`."""
    return symbol.partition(".")[0]
