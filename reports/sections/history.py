"""Runs of a folder -> one table of speedups, from each machine's first run to its newest, and the rows of one chart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from zoomgrad.reports.measured.races import SPEEDUP, Race, machines, side_by_side
from zoomgrad.reports.measured.table import KEYS, each
from zoomgrad.reports.text.figures import Figure, Sheet
from zoomgrad.results import units
from zoomgrad.results.record import BASELINE, Run

_NOTE = (
    f"Speedups over {BASELINE} on the same interpreter, each within its own run. Runs differ by noise, too: zoomgrad "
    "compare decides whether two runs differ. Machines with the same processor, cores and system count as one."
)
_HEADINGS = ("engine", "interpreter", "workload", "machine", "runs", "first run", "newest run", "newest / first")
_SERIES = [*KEYS, "machine"]


@dataclass(frozen=True)
class History:
    """Contents of the history."""

    lead: str
    finding: str
    sheet: Sheet
    """One row for each engine, interpreter, workload and machine; largest change first."""
    chart: pd.DataFrame
    """Series of one workload and interpreter on the newest run's machine: one row per engine and run. `place` numbers
    the machine's runs. The speedup and its bounds are relative to the engine's first run."""


def history(races: Iterable[Race], left_out: Sequence[str] = ()) -> History | None:
    """Build the history of these runs, in any order; None if no cell was measured twice on one machine.

    left_out: folders that the history omits, with the reason.
    """
    races = sorted(races, key=lambda one: (one.run.created_at, one.run.id))
    runs = [one.run for one in races]
    table = side_by_side(races)
    table = table[table.duplicated(_SERIES, keep=False)].sort_values([*_SERIES, "run"])
    if table.empty:
        return None
    series = table.groupby(_SERIES, observed=True, sort=False)
    newest = series.tail(1).assign(runs=series.size().to_numpy(), first=series["speedup"].first().to_numpy())
    newest["change"] = newest["speedup"] / newest["first"]
    newest = newest.iloc[np.argsort(-np.abs(np.log(newest["change"].to_numpy())), kind="stable")]
    sheet = Sheet("", 4, _HEADINGS, tuple(map(_row, each(newest))), (_NOTE, *_machines_said(runs), *left_out))
    largest = newest.iloc[0]
    where = f"{largest.engine} on {largest.workload}, {largest.interpreter}"
    finding = f"Largest change: {where}: {units.ratio(largest.change)} the speedup of the first run."
    return History(_lead(runs), finding, sheet, _charted(table))


def _row(row: Any) -> tuple[Figure, ...]:
    return (
        *(Figure(str(getattr(row, key))) for key in KEYS),
        Figure(row.machine.removeprefix("machine ")),
        Figure(f"{row.runs}"),
        Figure(units.ratio(row.first)),
        Figure(units.ratio(row.speedup)),
        Figure(units.ratio(row.change)),
    )


def _lead(runs: Sequence[Run]) -> str:
    first, last = (f"{run.created_at:%Y-%m-%d %H:%M %Z}" for run in (runs[0], runs[-1]))
    where = units.count(len(set(machines(runs))), "machine")
    return f"{units.count(len(runs), 'run')} of {where}, {first} to {last}."


def _machines_said(runs: Sequence[Run]) -> list[str]:
    """Name each machine's processor."""
    processors = dict(zip(machines(runs), (run.machine.get("processor", "") for run in runs), strict=True))
    return [f"{name}: {processor or 'unknown'}" for name, processor in processors.items()]


def _charted(table: pd.DataFrame) -> pd.DataFrame:
    """The workload and interpreter with most results on the newest run's machine, relative to each first run."""
    here = table[table["machine"] == table.sort_values("run")["machine"].iloc[-1]]
    here = here.assign(place=here["run"].cat.remove_unused_categories().cat.codes)
    parts: list[pd.DataFrame] = [rows for _, rows in here.groupby(["workload", "interpreter"], observed=True)]
    rows = max(parts, key=len)
    first = rows.groupby("engine", observed=True)["speedup"].transform("first")
    return rows.assign(**{name: rows[name] / first for name in SPEEDUP})
