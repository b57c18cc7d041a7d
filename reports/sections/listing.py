"""View -> a table of text per workload, one row per cell.

A column is one entry of `_COLUMNS`. A figure added to a record gets a column automatically, unless the section on
phases shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from zoomgrad.reports.measured.headline import status_text
from zoomgrad.reports.measured.outcome import MEASURED
from zoomgrad.reports.measured.table import FIGURES, each, in_order, measured
from zoomgrad.reports.sections.compiling.phases import FIGURES_OF_PHASES
from zoomgrad.reports.text.figures import Figure, approximate, compile_time, ratio, time
from zoomgrad.reports.text.native_notes import native_note
from zoomgrad.reports.view import View
from zoomgrad.results import units
from zoomgrad.results.record import Run, WorkloadFacts
from zoomgrad.results.stats.intervals import MIN_PROCESSES

Column = tuple[str, Callable[[Any], Figure]]


@dataclass(frozen=True)
class Line:
    """One cell. figures: one per heading; a cell without a result has a reason instead."""

    engine: str
    interpreter: str
    status: str
    reason: str = ""
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class Listing:
    """The table of one workload."""

    workload: str
    facts: WorkloadFacts | None
    headings: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]


def listings(view: View) -> tuple[Listing, ...]:
    """One table for each workload of the plan, lines in plan order."""
    table = view.table
    return tuple(
        _listing(view.run, name, table[table["workload"] == name].sort_values(["engine", "interpreter"], kind="stable"))
        for name in in_order(table, "workload")
    )


def _epoch(row: Any) -> Figure:
    figure = time(row, "epoch_seconds")
    return replace(figure, text=approximate(figure.text, row.extrapolated))


_COLUMNS: tuple[Column, ...] = (
    ("a step", lambda row: time(row, "step_seconds")),
    ("speedup", lambda row: ratio(row, "speedup")),
    ("speedup, reference", lambda row: ratio(row, "speedup_reference")),
    ("compile", lambda row: Figure(compile_time(row.compile_seconds))),
    ("an epoch", _epoch),
    ("bits", lambda row: Figure(row.bits)),
)


def _figure(name: str) -> Column:
    heading = name.removesuffix("_seconds").removesuffix("_bytes").replace("_", " ")
    return heading, lambda row: Figure(units.by_name(name, getattr(row, name)))


def _listing(run: Run, workload: str, rows: pd.DataFrame) -> Listing:
    facts = run.workloads.get(workload)
    columns = [*_COLUMNS, *(_figure(name) for name in FIGURES if name not in FIGURES_OF_PHASES)]
    if facts is not None and facts.samples_per_step > 1:
        columns.insert(1, ("a sample", lambda row: Figure(units.duration(row.sample_seconds))))
    return Listing(
        workload,
        facts,
        tuple(heading for heading, _ in columns),
        tuple(_line(row, columns) for row in each(rows)),
        tuple(_notes(run, rows)),
    )


def _line(row: Any, columns: list[Column]) -> Line:
    if row.status != MEASURED:
        return Line(row.engine, row.interpreter, row.status, reason=f"{status_text(row.status)}: {row.reason}")
    return Line(row.engine, row.interpreter, row.status, figures=tuple(figure(row) for _, figure in columns))


def _notes(run: Run, rows: pd.DataFrame) -> list[str]:
    """Return the notes that this table needs."""
    results = measured(rows)
    notes = []
    if results["extrapolated"].astype(bool).any():
        notes.append("≈ marks an epoch that was not run in full: its time is the time per step times the steps.")
    if results["step_seconds_low"].isna().any():
        notes.append(
            f"“no interval”: fewer than {MIN_PROCESSES} processes, too few to see how they vary. Raise --blocks."
        )
    if (results["blocks"] < run.blocks).any():
        notes.append(f"Some cells have fewer than the {run.blocks} planned blocks: the page's data has each.")
    notes += native_note(in_order(rows, "engine"), run.engines)
    return notes
