"""Rows of one workload -> the trade-off of compile time against epoch time: its front, and its least totals.

The total of so many epochs is compile time and those epochs, from medians. Whoever has the least total of any number of
epochs is on the front; not everyone on the front has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from reports.measured.table import measured

PUBLISHED_WORKLOADS = ("mnist", "mnist-b1000")
"""The published model and data, updated after each image and after each 1,000."""


@dataclass(frozen=True)
class Least:
    """The least total time of so many epochs, of all rows."""

    epochs: int
    row: Any
    total_seconds: float

    def epoch_seconds(self, compile_seconds: float) -> float:
        """How long an epoch may take for the same total, after so much time spent compiling."""
        return (self.total_seconds - compile_seconds) / self.epochs


def trade_off_workload(table: pd.DataFrame) -> str | None:
    """Of the published workloads the one that most cells were measured on; None where none was.

    The one updated after each 1,000 images wins a tie: only there a compiler may do all of a batch at once.
    """
    rows = measured(table)
    count = {name: int((rows["workload"] == name).sum()) for name in reversed(PUBLISHED_WORKLOADS)}
    most = max(count, key=count.__getitem__)
    return most if count[most] else None


def traded(table: pd.DataFrame) -> pd.DataFrame:
    """The rows whose epoch and compile time are known."""
    rows = measured(table)
    return rows[rows["epoch_seconds"].notna() & rows["compile_seconds"].notna()]


def front(rows: pd.DataFrame) -> pd.DataFrame:
    """The Pareto front: rows that no other beats in one time without losing in the other, least compile time first."""
    ordered = rows.sort_values(["compile_seconds", "epoch_seconds"], kind="stable")
    shortest_before = ordered["epoch_seconds"].cummin().shift(fill_value=float("inf"))
    return ordered[ordered["epoch_seconds"] < shortest_before]


def least(rows: pd.DataFrame, epochs: int) -> Least:
    """Who takes the least time to compile and train so many epochs; rows must not be empty."""
    totals = rows["compile_seconds"] + epochs * rows["epoch_seconds"]
    best = int(totals.argmin())
    return Least(epochs, rows.iloc[best], float(totals.iloc[best]))
