"""Table -> the headline: engines as rows, interpreters as columns, for the most informative workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from reports.measured.outcome import IDENTICAL, MEASURED, MISSING, UNSTEADY
from reports.measured.table import each, in_order, measured
from results import units

_WORDS = {"timed-out": "timed out", UNSTEADY: "never settled", MISSING: "not run"}
UNPLANNED = "unplanned"
"""Status of an engine and interpreter whose cell is not in the plan."""
_AS_LONG = 2.0
"""Epoch times within this factor count as equal (mnist, mnist-b1000), so that noise can't choose the headline."""


@dataclass(frozen=True)
class Entry:
    """One engine on one interpreter, as text."""

    status: str
    text: str
    """Time of a step, or the reason why there is none; never empty."""
    speedup: str = ""


@dataclass(frozen=True)
class Rung:
    """One engine of the ladder, with one entry for each interpreter."""

    engine: str
    caveat: str
    """What an engine promises instead of identical bits (`within 1e-09`), and whether it is a peer; empty for a strict
    engine."""
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Headline:
    """All engines on all interpreters for one workload."""

    workload: str
    interpreters: tuple[str, ...]
    rows: tuple[Rung, ...]
    notes: tuple[str, ...] = ()


def headline(table: pd.DataFrame, workload: str) -> Headline:
    """Return the headline table of a workload."""
    rows = table[table["workload"] == workload]
    interpreters = by_coverage(rows)
    shown = entries(rows)
    caveats = {row.engine: _caveat(row) for row in each(rows)}
    return Headline(
        workload,
        tuple(interpreters),
        tuple(
            Rung(engine, caveats[engine], tuple(shown[engine, interpreter] for interpreter in interpreters))
            for engine in in_order(rows, "engine")
        ),
    )


def headline_workload(table: pd.DataFrame) -> str | None:
    """Return the workload with the longest epoch, if it has at least half as many measured cells as the best covered.

    So size decides (mnist before digits before xor), unless little was measured there. Of epochs within a factor of
    two, the first in the run's order wins. If nothing was measured, the workload with the most cells.
    """
    names = in_order(table, "workload")
    if not names:
        return None
    results = measured(table)
    covered = {name: int((results["workload"] == name).sum()) for name in names}
    most = max(covered.values())
    if not most:
        return max(names, key=lambda name: int((table["workload"] == name).sum()))
    epochs = {
        name: float(results.loc[results["workload"] == name, "epoch_seconds"].fillna(0.0).max())
        for name in names
        if covered[name] * 2 >= most
    }
    return next(name for name, seconds in epochs.items() if seconds * _AS_LONG >= max(epochs.values()))


def by_coverage(rows: pd.DataFrame) -> list[str]:
    """Return one workload's interpreters, most results first, because a narrow screen shows only the first columns."""
    results = measured(rows)["interpreter"]
    return sorted(in_order(rows, "interpreter"), key=lambda name: -int((results == name).sum()))


def entries(table: pd.DataFrame) -> dict[tuple[str, str], Entry]:
    """Return the entry for every pair of an engine and an interpreter in one workload's rows, planned or not."""
    found = {(str(row.engine), str(row.interpreter)): _entry(row) for row in each(table)}
    unplanned = Entry(UNPLANNED, "not planned")
    return {
        (engine, interpreter): found.get((engine, interpreter), unplanned)
        for engine in in_order(table, "engine")
        for interpreter in in_order(table, "interpreter")
    }


def status_text(status: str) -> str:
    """Return a status as a reader sees it."""
    return _WORDS.get(status, status)


def _caveat(row: Any) -> str:
    bits = "" if row.promise == IDENTICAL else str(row.promise)
    return f"peer, {bits}" if row.peer else bits


def _entry(row: Any) -> Entry:
    status = str(row.status)
    if status != MEASURED:
        return Entry(status, status_text(status))
    speedup = row.speedup
    return Entry(status, units.duration(row.step_seconds), "" if speedup != speedup else units.ratio(speedup))
