"""Table -> the headline: its workload and its leading engine, and the order of interpreters."""

from __future__ import annotations

from typing import Any

import pandas as pd

from zoomgrad.reports.measured.outcome import MISSING
from zoomgrad.reports.measured.table import in_order, measured, ranked_rows, smallest

_WORDS = {"timed-out": "timed out", MISSING: "not run"}
PUBLISHED_WORKLOADS = ("mnist", "mnist-b1000")
"""The published model and data, with an update after every image, or after every 1,000 images as published."""
_AS_LONG = 2.0
"""Epoch times within this factor count as equal, so that noise can't choose the headline."""


def leader(rows: pd.DataFrame) -> Any:
    """Return the ranked row with the least time of a step, on the reference CPython if one was measured there.

    None if no row has a rank.
    """
    rows = ranked_rows(measured(rows))
    on_reference = rows[rows["on_reference"].astype(bool)]
    rows = rows if on_reference.empty else on_reference
    return None if rows.empty else smallest(rows, "step_seconds")


def headline_workload(table: pd.DataFrame) -> str | None:
    """Return the workload of the headline; None if the plan is empty.

    1. The published MNIST graph, if two engines were ranked on it. 2. The largest workload: the longest epoch, if
       it has at least half as many measured cells as the best covered; of epochs within a factor of two, the first in
       the run's order. 3. If nothing was measured, the workload with the most cells.
    """
    names = in_order(table, "workload")
    if not names:
        return None
    results = measured(table)
    for name in PUBLISHED_WORKLOADS:
        if len(ranked_rows(results[results["workload"] == name])) > 1:
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
    """Return one workload's interpreters, the reference CPython first if it has a result, then by number of results."""
    results = measured(rows)
    on_reference = set(results["interpreter"][results["on_reference"].astype(bool)])
    counts = results["interpreter"].value_counts()
    return sorted(in_order(rows, "interpreter"), key=lambda name: (name not in on_reference, -int(counts.get(name, 0))))


def status_text(status: str) -> str:
    """Return a status as a reader sees it."""
    return _WORDS.get(status, status)
