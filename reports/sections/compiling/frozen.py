"""Table -> frozen programs beside trainable ones: compile time, time of a forward pass, and size of the object.

An engine named `…-frozen` has its weights as constants and no backward pass. Its twin is the engine without the suffix,
on the same workload and interpreter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from reports.measured.table import each, in_order, measured
from reports.text.figures import Figure, Section, Sheet, time
from results import units

SUFFIX = "-frozen"

_LEAD = (
    "A frozen program has its weights as constants, and only the forward pass. A trainable one also compiles the "
    "backward pass and the update, and reads its weights from memory. A step is a forward pass on both sides, over the "
    "same rows with the same losses. Straight-line code has each weight as a constant in an expression; recovered "
    "loops have a table of weights, which is part of the frozen object."
)


def frozen(table: pd.DataFrame) -> Section | None:
    """One sheet per workload with a measured frozen cell; a line has the frozen cell and its twin."""
    results = measured(table)
    shown = results[results["engine"].astype(str).str.endswith(SUFFIX)]
    sheets = tuple(
        Sheet(
            title=workload,
            names=2,
            headings=(
                "engine",
                "interpreter",
                *(f"{what}, {kind}" for what in ("compile", "step", "object") for kind in ("trainable", "frozen")),
            ),
            rows=tuple(_lines(results[results["workload"] == workload])),
        )
        for workload in in_order(shown, "workload")
    )
    return Section("frozen", "Frozen against trainable", _LEAD, sheets) if sheets else None


def _lines(rows: pd.DataFrame) -> Iterator[tuple[Figure, ...]]:
    found = {(str(row.engine), str(row.interpreter)): row for row in each(rows)}
    for (engine, interpreter), row in found.items():
        if not engine.endswith(SUFFIX):
            continue
        name = engine.removesuffix(SUFFIX)
        pair = (found.get((name, interpreter)), row)
        yield (
            Figure(name),
            Figure(interpreter),
            *(_time(one, column) for column in ("compile_seconds", "step_seconds") for one in pair),
            *(Figure(units.ABSENT if one is None else units.by_name("object_bytes", one.object_bytes)) for one in pair),
        )


def _time(row: Any, column: str) -> Figure:
    return Figure(units.ABSENT) if row is None else time(row, column)
