"""perf's table from "Compiling ML models to C for fun", as data: baseline on mnist, CPython 3.10, down to 0.5 %."""

from __future__ import annotations

from typing import NamedTuple

SOURCE = "138,000 samples of cycles, CPython 3.10 as Ubuntu builds it"
CUT = 0.005
"""The published table omits shares below this."""


class PublishedSymbol(NamedTuple):
    """A row of the published table. `of_collector` is our addition: whether the garbage collector uses the function."""

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
"""First rows of the table: the collector itself, without the functions that walk one type's objects."""
COLLECTOR_TOTAL = sum(symbol.share for symbol in PUBLISHED if symbol.of_collector)
FORMER_NAMES = {"gc_collect_main": ("collect",)}
"""Function -> its names in older interpreters."""
INLINED = ("visit_decref",)
"""Functions that every collection calls but the published table lacks, because that build inlined them."""


def published_share(name: str) -> float:
    """Return a function's published share; 0 if the table lacks it."""
    return next((symbol.share for symbol in PUBLISHED if symbol.name == name), 0.0)


def plain(symbol: str) -> str:
    """Strip what a compiler appends to the name of a copy: `dict_traverse.lto_priv.0` becomes `dict_traverse`."""
    return symbol.partition(".")[0]
