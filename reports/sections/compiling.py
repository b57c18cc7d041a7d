"""View -> what compiling costs: time by phase, every recorded figure, and how time grows with the graph.

The table of figures derives from the fields of `results.record.Figures`: their names, units and meanings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

from zoomgrad.reports.charts.growth import growth
from zoomgrad.reports.measured.headline import by_coverage
from zoomgrad.reports.measured.table import FIGURES, NAN, PHASES, each, in_order, main_rows, measured, phase_column
from zoomgrad.reports.plot import Drawing
from zoomgrad.reports.text.figures import Figure, Section, Sheet, compile_time
from zoomgrad.reports.view import View
from zoomgrad.results import units
from zoomgrad.results.record import Figures

FORMS = {"recovered loops": ("rerolled",), "straight-line C": ("tcc", "gcc", "clang"), "Python": ("python", "bytecode")}
"""Form of the code -> the first words of its engines' names."""
FAMILY = r"mlp-[0-9x]+"
"""Names of the workloads of a growth curve. Those with larger batches have the same graphs."""
MIN_POINTS = 3
"""Fewest graphs for a fit."""
LARGE_ROWS = 10_000
"""Below this, compile time is mostly constant cost: starting a compiler and a linker."""
STEEP = 1.1
"""An exponent above this is more than proportional growth plus noise."""


def compiling(view: View) -> Section | None:
    """The phases and figures of the headline workload's engines, and growth with the graph; None without a result."""
    rows = main_rows(measured(view.table))
    if rows.empty:
        return None
    compiled, charts = _of_one(view, rows[rows["compile_seconds"] > 0]), []
    sheets = [_phases(compiled)] if len(compiled) else []
    if (figures := _figures(_of_one(view, rows))).rows:
        sheets.append(figures)
    for sheet, chart in _growth(points(view.table)):
        sheets.append(sheet)
        charts.append(chart)
    if not sheets:
        return None
    return Section("compiling", "What does compiling cost?", _answer(compiled), tuple(sheets), tuple(charts))


def points(table: pd.DataFrame) -> pd.DataFrame:
    """Return measured cells of `mlp-…` workloads that compiled a tape, smallest graph first, with `memory_bytes`.

    memory_bytes: the peak of the worker or of its compilers, whichever is larger. No rows below `MIN_POINTS` workloads.
    """
    rows = measured(table)
    rows = rows[rows["workload"].astype(str).str.fullmatch(FAMILY) & (rows["tape_rows"] > 0)]
    rows = rows[rows["compile_seconds"] > 0].sort_values("tape_rows", kind="stable")
    rows = rows.assign(memory_bytes=rows[["peak_bytes", "peak_compiler_bytes"]].max(axis=1))
    return rows if rows["workload"].nunique() >= MIN_POINTS else rows.iloc[:0]


def exponent(rows: pd.DataFrame) -> float:
    """Fit compile time as a power of the rows of the graph, over large graphs if those suffice; NaN for too few."""
    large = rows[rows["tape_rows"] >= LARGE_ROWS]
    if large["tape_rows"].nunique() < MIN_POINTS:
        large = rows
    if large["tape_rows"].nunique() < MIN_POINTS:
        return NAN
    return float(np.polyfit(np.log(large["tape_rows"]), np.log(large["compile_seconds"]), 1)[0])


def _of_one(view: View, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the headline workload, or of another one that compiled, on one interpreter."""
    for workload in view.workloads(rows):
        here = rows[rows["workload"] == workload]
        return here[here["interpreter"] == by_coverage(here)[0]]
    return rows


def _answer(rows: pd.DataFrame) -> str:
    if rows.empty:
        return "No engine compiled anything"
    parts = []
    for form, roots in FORMS.items():
        seconds = [row.compile_seconds for row in each(rows) if re.split("[-+]", str(row.engine))[0] in roots]
        if seconds:
            low, high = units.duration(min(seconds)), units.duration(max(seconds))
            parts.append(f"{form} {low if low == high else f'{low} to {high}'}")
    return f"On {rows['workload'].iloc[0]}: {', '.join(parts) or 'see the table'}"


def _phases(rows: pd.DataFrame) -> Sheet:
    lines = []
    for row in each(rows.sort_values("compile_seconds")):
        seconds = (getattr(row, phase_column(phase)) for phase in PHASES)
        times = (Figure(units.duration(value)) for value in seconds)
        lines.append((Figure(str(row.engine)), Figure(compile_time(row.compile_seconds)), *times))
    title = f"{rows['workload'].iloc[0]} on {rows['interpreter'].iloc[0]}"
    return Sheet(title, 1, ("engine", "total", *PHASES), tuple(lines))


def _figures(rows: pd.DataFrame) -> Sheet:
    """Return the range of every recorded figure that any of these cells has, with its meaning."""
    lines = []
    for name, field in Figures.model_fields.items():
        if name in FIGURES and rows[name].notna().any():
            least, most = (Figure(units.by_name(name, value)) for value in (rows[name].min(), rows[name].max()))
            lines.append((Figure(name), Figure(str(field.description), mark="reason"), least, most))
    title = f"Figures: {rows['workload'].iloc[0]}, {rows['interpreter'].iloc[0]}"
    return Sheet(title, 2, ("figure", "meaning", "least", "most"), tuple(lines))


def _growth(curve: pd.DataFrame) -> Iterator[tuple[Sheet, Drawing]]:
    """Yield a sheet of exponents and a chart for the interpreter with most points."""
    if curve.empty:
        return
    here = curve[curve["interpreter"] == by_coverage(curve)[0]]
    lines = []
    for engine in in_order(here, "engine"):
        rows = here[here["engine"] == engine]
        power, last = exponent(rows), rows.iloc[-1]
        steep = power > STEEP
        lines.append(
            (
                Figure(engine),
                Figure(units.ABSENT if math.isnan(power) else f"{power:.2f}", mark="steep" if steep else ""),
                Figure(units.duration(last["compile_seconds"] / last["tape_rows"])),
                Figure(units.size(last["memory_bytes"])),
                Figure(f"{last['tape_rows']:,.0f}"),
            )
        )
    headings = ("engine", "exponent", "compile per row", "memory", "rows of the largest graph")
    note = "An exponent of 1 is compile time proportional to the graph, fitted on logarithms."
    title = f"Compile time against the size of the graph, on {here['interpreter'].iloc[0]}"
    yield Sheet("Growth with the graph", 1, headings, tuple(lines), (note,)), growth("growth", title, here)
