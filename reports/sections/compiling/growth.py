"""Table -> how compile time and memory grow with the graph, over the run's `mlp-…` workloads.

`points` are the measured cells; a `Growth` summarizes one engine's points on one interpreter. Time is fitted as a power
of the number of rows, by least squares on logarithms: an exponent of 1 means time proportional to the graph. Memory is
fitted as a straight line, because an interpreter and a compiler use some before the first row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from zoomgrad.reports.measured.headline import status_text
from zoomgrad.reports.measured.outcome import MEASURED
from zoomgrad.reports.measured.table import NAN, each, in_order, measured
from zoomgrad.reports.text.figures import Figure, Section, Sheet
from zoomgrad.results import units

FAMILY = r"mlp-[0-9x]+"
"""Names of the workloads of a growth curve, as a regular expression. Others with larger batches have the same graphs.
"""
MIN_POINTS = 3
"""Fewest graphs for a fit."""
LARGE_ROWS = 10_000
"""Below this, compile time is mostly constant cost: starting a compiler and a linker."""
STEEP = 1.1
"""An exponent above this is more than proportional growth plus noise."""

_LEAD = (
    "An exponent of 1 means compile time proportional to the graph. It is fitted on logarithms over graphs of "
    f"{LARGE_ROWS:,} rows or more (“graphs” counts them, out of all), because compiling a smaller graph is almost all "
    f"constant cost: starting a compiler and a linker. With fewer than {MIN_POINTS} such graphs it is fitted over "
    f"all graphs, and reads too low. Exponents above {STEEP} are marked: time grows faster than the graph. Compile "
    "time per row is that of the largest graph. Memory per row is the slope of a straight line through the peak "
    "resident sets, each of the worker or its largest compiler, whichever is larger."
)


@dataclass(frozen=True)
class Growth:
    """One engine on one interpreter. Figures are NaN below `MIN_POINTS` graphs."""

    engine: str
    interpreter: str
    largest_rows: int
    points: int
    fitted_points: int
    """Points that the exponent is fitted over: the large graphs, or all graphs if those are too few."""
    exponent: float
    """Of compile time over rows."""
    row_seconds: float
    """Compile time per row, of the largest graph."""
    row_bytes: float
    """Slope of memory over rows."""

    @property
    def steep(self) -> bool:
        return self.exponent > STEEP


def points(table: pd.DataFrame) -> pd.DataFrame:
    """Select measured cells of `mlp-…` workloads that compiled a tape, smallest graph first, and add `memory_bytes`.

    memory_bytes: the peak of the worker or of its compilers, whichever is larger. No rows below `MIN_POINTS` workloads.
    """
    rows = measured(table)
    rows = rows[rows["workload"].astype(str).str.fullmatch(FAMILY) & (rows["tape_rows"] > 0)]
    rows = rows[rows["compile_seconds"] > 0].sort_values("tape_rows", kind="stable")
    rows = rows.assign(memory_bytes=rows[["peak_bytes", "peak_compiler_bytes"]].max(axis=1))
    return rows if rows["workload"].nunique() >= MIN_POINTS else rows.iloc[:0]


def growths(found: pd.DataFrame) -> list[Growth]:
    """Summarize each engine and interpreter among `points`, in the run's order."""
    return [
        _growth(engine, interpreter, rows)
        for engine in in_order(found, "engine")
        for interpreter in in_order(found, "interpreter")
        if len(rows := found[(found["engine"] == engine) & (found["interpreter"] == interpreter)])
    ]


def growth(table: pd.DataFrame) -> Section | None:
    """The growths as text; None if there are no points."""
    found = growths(points(table))
    if not found:
        return None
    sheet = Sheet(
        title="",
        names=2,
        headings=("engine", "interpreter", "exponent", "compile per row", "memory per row", "graphs", "largest graph"),
        rows=tuple(_line(one, list(_absent(table, one))) for one in found),
    )
    return Section("growth-table", "Growth with the graph", _LEAD, (sheet,))


def _growth(engine: str, interpreter: str, rows: pd.DataFrame) -> Growth:
    sizes, seconds, memory = (
        rows[name].to_numpy(dtype=float) for name in ("tape_rows", "compile_seconds", "memory_bytes")
    )
    large = sizes >= LARGE_ROWS
    if len(set(sizes[large])) < MIN_POINTS:
        large = np.ones_like(large)
    weighed = ~np.isnan(memory)
    return Growth(
        engine=engine,
        interpreter=interpreter,
        largest_rows=int(sizes[-1]),
        points=len(sizes),
        fitted_points=int(large.sum()),
        exponent=_slope(np.log(sizes[large]), np.log(seconds[large])),
        row_seconds=float(seconds[-1] / sizes[-1]),
        row_bytes=_slope(sizes[weighed], memory[weighed]),
    )


def _slope(x: np.ndarray, y: np.ndarray) -> float:
    """Slope of the least-squares line through the points; NaN if they are too few."""
    return float(np.polyfit(x, y, 1)[0]) if len(set(x)) >= MIN_POINTS else NAN


def _absent(table: pd.DataFrame, one: Growth) -> Iterator[str]:
    """Why a curve ends early: `mlp-784x200x10 timed out`."""
    rows = table[(table["engine"] == one.engine) & (table["interpreter"] == one.interpreter)]
    for row in each(rows[rows["workload"].astype(str).str.fullmatch(FAMILY) & (rows["status"] != MEASURED)]):
        yield f"{row.workload} {status_text(row.status)}"


def _line(one: Growth, absent: list[str]) -> tuple[Figure, ...]:
    exponent = Figure(units.ABSENT, f"fewer than {MIN_POINTS} graphs")
    if not math.isnan(one.exponent):
        exponent = Figure(f"{one.exponent:.2f}", "faster than the graph" if one.steep else "", _mark(one))
    return (
        Figure(one.engine),
        Figure(one.interpreter),
        exponent,
        Figure(units.duration(one.row_seconds)),
        Figure(units.ABSENT if math.isnan(one.row_bytes) else _row_bytes(one.row_bytes)),
        Figure(f"{one.fitted_points} of {one.points}"),
        Figure(units.count(one.largest_rows, "row"), ", ".join(absent)),
    )


def _mark(one: Growth) -> str:
    return "steep" if one.steep else ""


def _row_bytes(value: float) -> str:
    # The slope may be negative if the interpreter's own memory hides the graph's.
    return units.size(value) if value >= 0 else "none seen"
