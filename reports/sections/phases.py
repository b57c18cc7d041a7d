"""Table -> where compile time goes: seconds by phase, and the sizes of what was compiled, a sheet a workload."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.measured.table import PHASES, each, in_order, measured, phase_column
from reports.text.figures import Figure, Section, Sheet
from results import units

SIZES = {
    "tape_rows": "rows",
    "source_bytes": "source",
    "object_bytes": "object",
    "peak_compiler_bytes": "compiler's peak",
    "looped_share": "in loops",
    "translation_units": "units",
    "parallel_compilers": "side by side",
    "vector_doubles": "doubles a vector",
}
"""Figures of a record that only a compiled engine has, and their headings."""

_WITHOUT_COLUMN = ("parallel_compilers", "vector_doubles")
"""Figures that have no column here, where paper ends: the first stands below the units, the other with the records."""
_SHOWN = {name: heading for name, heading in SIZES.items() if name not in _WITHOUT_COLUMN}

_COUNTS = ("tape_rows", "translation_units", "parallel_compilers", "vector_doubles")

_LEAD = (
    "Medians over the blocks that compiled; a build that is slow compiles in one block only. A total is the median of "
    "totals, so its phases need not add up to it. A compiler's peak is its largest process in any block. In loops is "
    "the share of all additions, multiplications and calls that was recovered as counted loops. Units are translation "
    "units, side by side the compilers that shared them. A speedup from the second core is not a speedup from "
    "splitting."
)


def phases(table: pd.DataFrame) -> Section | None:
    """One sheet a workload that has a measured cell with phases or sizes; lines by engine, then interpreter."""
    results = measured(table)
    shown = results[(results["compile_seconds"] > 0) | results[list(SIZES)].notna().any(axis=1)]
    sheets = tuple(
        Sheet(
            title=workload,
            names=2,
            headings=("engine", "interpreter", *PHASES, "total", *_SHOWN.values()),
            rows=tuple(_line(row) for row in each(_sorted(shown[shown["workload"] == workload]))),
        )
        for workload in in_order(shown, "workload")
    )
    return Section("phases", "Compile time by phase", _LEAD, sheets) if sheets else None


def _sorted(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values(["engine", "interpreter"], kind="stable")


def _line(row: Any) -> tuple[Figure, ...]:
    seconds = (getattr(row, phase_column(phase)) for phase in PHASES)
    return (
        Figure(str(row.engine)),
        Figure(str(row.interpreter)),
        *(Figure(units.duration(value)) for value in (*seconds, row.compile_seconds)),
        *(Figure(size_text(name, getattr(row, name)), _below(name, row)) for name in _SHOWN),
    )


def _below(name: str, row: Any) -> str:
    compilers = row.parallel_compilers
    return f"{compilers:.0f} side by side" if name == "translation_units" and compilers == compilers else ""


def size_text(name: str, value: float) -> str:
    """A figure of `SIZES`, or any other of a record, as text."""
    if name == "looped_share":
        return f"{value:.2%}" if value == value else units.ABSENT
    # Counted, not measured: all their digits count.
    return f"{value:,.0f}" if name in _COUNTS and value == value else units.by_name(name, value)
