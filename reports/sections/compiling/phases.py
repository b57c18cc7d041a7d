"""Table -> what comes before training: compile time by phase, sizes of what was compiled.

One sheet per workload.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from zoomgrad.reports.measured.table import PHASES, each, in_order, measured, phase_column
from zoomgrad.reports.text.figures import Figure, Section, Sheet, compile_time
from zoomgrad.results import units

SIZES = {
    "tape_rows": "rows",
    "source_bytes": "source",
    "object_bytes": "object",
    "peak_compiler_bytes": "compiler's peak",
    "looped_share": "in loops",
    "translation_units": "units",
    "parallel_compilers": "side by side",
    "vector_doubles": "doubles per vector",
    "threads": "threads",
}
"""Figures that only a compiled engine's record has, with their headings."""

FIGURES_OF_PHASES = tuple(SIZES)
"""Figures of a record that this section shows, so the tables of the workloads need no column for them."""

_WITHOUT_COLUMN = ("looped_share", "translation_units", "parallel_compilers", "vector_doubles", "threads")
"""Figures without a column, so that the table fits on paper: below the rows, and with the records."""
_SHOWN = {name: heading for name, heading in SIZES.items() if name not in _WITHOUT_COLUMN}

_COUNTS = ("tape_rows", "translation_units", "parallel_compilers", "vector_doubles", "threads")

_LEAD = (
    "Medians over the blocks that compiled; a slow build compiles in one block only. A total is the median of totals, "
    "so its phases need not add up to it. “compiler's peak” is the peak memory of the largest process that a worker "
    "ran to compile, in any block: a compiler, or the second process that recovers loops of a family. “in loops” is "
    "the share of all additions, multiplications and calls that was recovered as counted loops."
)


def phases(table: pd.DataFrame) -> Section | None:
    """One sheet per workload with a measured cell that has a figure; lines by engine, then interpreter."""
    results = measured(table)
    shown = results[(results["compile_seconds"] > 0) | results[list(FIGURES_OF_PHASES)].notna().any(axis=1)]
    sheets = tuple(
        Sheet(
            title=workload,
            names=2,
            headings=("engine", "interpreter", *PHASES, "total", *_SHOWN.values()),
            rows=tuple(_line(row) for row in each(_sorted(shown[shown["workload"] == workload]))),
        )
        for workload in in_order(shown, "workload")
    )
    if not sheets:
        return None
    return Section("phases", "Compile time by phase", _LEAD, sheets)


def _sorted(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values(["engine", "interpreter"], kind="stable")


def _line(row: Any) -> tuple[Figure, ...]:
    seconds = (getattr(row, phase_column(phase)) for phase in PHASES)
    return (
        Figure(str(row.engine)),
        Figure(str(row.interpreter)),
        *(Figure(units.duration(value)) for value in seconds),
        Figure(compile_time(row.compile_seconds)),
        *(Figure(size_text(name, getattr(row, name)), _below(name, row)) for name in _SHOWN),
    )


def _below(name: str, row: Any) -> str:
    known = name == "tape_rows" and row.looped_share == row.looped_share
    return f"{size_text('looped_share', row.looped_share)} in loops" if known else ""


def size_text(name: str, value: float) -> str:
    """Format a figure of `SIZES`, or any other figure of a record."""
    if name == "looped_share":
        return f"{value:.2%}" if value == value else units.ABSENT
    # Counts are exact, so all digits are shown.
    return f"{value:,.0f}" if name in _COUNTS and value == value else units.by_name(name, value)
