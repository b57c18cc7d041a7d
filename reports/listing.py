"""A workload's cells as text, a row a cell. A column is one entry of `_COLUMNS`; recorded figures add themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from reports.headline import status_text
from reports.outcome import MEASURED
from reports.table import FIGURES, each, in_order, measured
from results import units
from results.record import Run, WorkloadFacts
from results.stats import MIN_PROCESSES

Column = tuple[str, Callable[[Any], "Figure"]]


@dataclass(frozen=True)
class Figure:
    """A figure, and its interval or why it has none."""

    text: str
    below: str = ""


@dataclass(frozen=True)
class Line:
    """figures: one a heading; none where the cell has no result, but a reason."""

    engine: str
    interpreter: str
    status: str
    reason: str = ""
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class Listing:
    """A workload's table."""

    workload: str
    facts: WorkloadFacts | None
    headings: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]


def listings(run: Run, table: pd.DataFrame) -> tuple[Listing, ...]:
    """One table a workload of the plan, lines in plan order."""
    return tuple(
        _listing(run, name, table[table["workload"] == name].sort_values(["engine", "interpreter"], kind="stable"))
        for name in in_order(table, "workload")
    )


def _times(column: str) -> Callable[[Any], Figure]:
    def figure(row: Any) -> Figure:
        value, low, high = (getattr(row, name) for name in (column, f"{column}_low", f"{column}_high"))
        return Figure(units.duration(value), _interval(value, units.duration_interval(low, high)))

    return figure


def _ratios(column: str) -> Callable[[Any], Figure]:
    def figure(row: Any) -> Figure:
        value, low, high = (getattr(row, name) for name in (column, f"{column}_low", f"{column}_high"))
        # baseline over itself is 1 by definition.
        return Figure(units.ratio(value), "" if low == high == 1 else _interval(value, units.ratio_interval(low, high)))

    return figure


def _interval(value: float, text: str) -> str:
    return "no interval" if text == units.ABSENT and not math.isnan(value) else text.replace(units.ABSENT, "")


def _compile(row: Any) -> Figure:
    return Figure("nothing" if row.compile_seconds == 0 else units.duration(row.compile_seconds))


def _epoch(row: Any) -> Figure:
    figure = _times("epoch_seconds")(row)
    return replace(figure, text=f"≈ {figure.text}") if row.extrapolated else figure


_COLUMNS: tuple[Column, ...] = (
    ("a step", _times("step_seconds")),
    ("speedup", _ratios("speedup")),
    ("speedup, reference", _ratios("speedup_reference")),
    ("compile", _compile),
    ("an epoch", _epoch),
    ("bits", lambda row: Figure(row.bits)),
    ("blocks", lambda row: Figure(str(row.blocks))),
)


def _figure(name: str) -> Column:
    heading = name.removesuffix("_seconds").removesuffix("_bytes").replace("_", " ")
    return heading, lambda row: Figure(units.by_name(name, getattr(row, name)))


def _listing(run: Run, workload: str, rows: pd.DataFrame) -> Listing:
    facts = run.workloads.get(workload)
    columns = [*_COLUMNS, *(_figure(name) for name in FIGURES)]
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
    """What a reader must know to read this table, and only that."""
    results = measured(rows)
    notes = []
    if results["extrapolated"].astype(bool).any():
        notes.append("≈ marks an epoch that was not run whole: its time is the time of a step times the steps.")
    if results["step_seconds_low"].isna().any():
        notes.append(f"No interval: fewer than {MIN_PROCESSES} processes, too few to resample. More --blocks give one.")
    if (results["blocks"] < run.blocks).any():
        notes.append(f"Some cells have fewer than the {run.blocks} planned blocks: see the column.")
    if "unchecked" in set(results["bits"]):
        notes.append("“unchecked” cells carry no proof against the reference.")
    return notes
