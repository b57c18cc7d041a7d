"""Rows of one workload -> the trade-off of compile time against epoch time: the Pareto front."""

from __future__ import annotations

import pandas as pd

from zoomgrad.reports.measured.table import measured


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
