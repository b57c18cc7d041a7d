"""Rows of one workload -> the trade-off of compile time against epoch time: the Pareto front and the least totals.

The total for n epochs is compile time plus n epoch times, from medians. A row with the least total for some n is on the
front, but a row on the front need not have the least total for any n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from reports.measured.table import measured


@dataclass(frozen=True)
class Least:
    """The row with the least total time for a number of epochs."""

    epochs: int
    row: Any
    total_seconds: float

    def epoch_seconds(self, compile_seconds: float) -> float:
        """Return the epoch time that gives the same total with that compile time."""
        return (self.total_seconds - compile_seconds) / self.epochs


def traded(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose epoch time and compile time are known."""
    rows = measured(table)
    return rows[rows["epoch_seconds"].notna() & rows["compile_seconds"].notna()]


def front(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the Pareto front, least compile time first.

    A row is on the front unless another row is at least as good in both times and better in one.
    """
    ordered = rows.sort_values(["compile_seconds", "epoch_seconds"], kind="stable")
    shortest_before = ordered["epoch_seconds"].cummin().shift(fill_value=float("inf"))
    return ordered[ordered["epoch_seconds"] < shortest_before]


def least(rows: pd.DataFrame, epochs: int) -> Least:
    """Return the row that compiles and trains that number of epochs in the least time; rows must not be empty."""
    totals = rows["compile_seconds"] + epochs * rows["epoch_seconds"]
    best = int(totals.argmin())
    return Least(epochs, rows.iloc[best], float(totals.iloc[best]))
