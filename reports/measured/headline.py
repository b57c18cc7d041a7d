"""Table -> the headline: its workload, its claim, and a table of engines and interpreters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from zoomgrad.reports.measured.outcome import IDENTICAL, MEASURED, MISSING
from zoomgrad.reports.measured.table import contenders, each, in_order, ladder, measured, smallest
from zoomgrad.results import units
from zoomgrad.results.record import BASELINE

_WORDS = {"timed-out": "timed out", MISSING: "not run"}
UNPLANNED = "unplanned"
"""Status of an engine and interpreter whose cell is not in the plan."""
PUBLISHED_WORKLOADS = ("mnist-b1000", "mnist")
"""The published model and data, with an update after every 1,000 images or after every image."""
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


@dataclass(frozen=True)
class Claim:
    """The headline: the leading engine on the untouched graph, and the compiler that it is compared with."""

    row: Any
    rival: Any
    """None if nothing else was measured on the same interpreter."""
    text: str


def claim(table: pd.DataFrame, workload: str | None) -> Claim | None:
    """Return the headline of a workload; None if no contender has a compile time and an epoch.

    README, page and charts say the same: what the leader costs to compile and per epoch, against Clang -O1.
    """
    rows = measured(table[table["workload"] == workload])
    rows = rows[rows["compile_seconds"].notna() & rows["epoch_seconds"].notna()]
    row = leader(rows)
    if row is None:
        return None
    others = ladder(rows[rows["interpreter"] == row.interpreter])
    by_name = {str(other.engine): other for other in each(others) if other.engine != row.engine}
    rival, name = next(((by_name[engine], name) for engine, name in RIVALS.items() if engine in by_name), (None, ""))
    graph = "MNIST" if workload in PUBLISHED_WORKLOADS else workload
    text = (
        f"The untouched {graph} graph, same bits: {compiled(row.compile_seconds)} to compile, {_epoch(row)} per epoch "
        f"({row.engine} on {row.interpreter})"
    )
    if rival is not None:
        text += f", against {compiled(rival.compile_seconds)} and {_epoch(rival)} for {name}"
    return Claim(row, rival, text)


def leader(rows: pd.DataFrame) -> Any:
    """Return the contender with the least time of a step, on the reference CPython if one was measured there.

    None if no contender was measured.
    """
    rows = contenders(measured(rows))
    at_home = rows[rows["on_reference"].astype(bool)]
    rows = rows if at_home.empty else at_home
    return None if rows.empty else smallest(rows, "step_seconds")


RIVALS = {"clang-O1": "Clang -O1", "gcc-O1": "gcc -O1", "tcc": "TCC", BASELINE: BASELINE}
"""The first that was measured is the one that the headline compares with."""


def compiled(seconds: float) -> str:
    """Format compile time: 0 means that there was nothing to compile."""
    return "nothing" if seconds == 0 else units.duration(seconds)


def _epoch(row: Any) -> str:
    return f"{'≈ ' if row.extrapolated else ''}{units.duration(row.epoch_seconds)}"


def headline_workload(table: pd.DataFrame) -> str | None:
    """Return the workload of the headline; None if the plan is empty.

    1. The published MNIST graph, updated after every 1,000 images, then after every image: the first on which a
       contender and a rival were measured. 2. The largest workload: the longest epoch, if it has at least half as many
       measured cells as the best covered; of epochs within a factor of two, the first in the run's order. 3. If nothing
       was measured, the workload with the most cells.
    """
    names = in_order(table, "workload")
    if not names:
        return None
    results = measured(table)
    for name in PUBLISHED_WORKLOADS:
        found = claim(table, name)
        if found and found.rival is not None:
            return name
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
