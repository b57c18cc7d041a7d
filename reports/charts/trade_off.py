"""Compile time against the time of an epoch: what a faster epoch costs. This is the project's main chart."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pandas as pd

from zoomgrad.reports.measured.table import each, measured
from zoomgrad.reports.plot import Drawing, Plot, Scale, times
from zoomgrad.reports.text.figures import compile_time, epoch_time, listed

_STRIP = 0.12
"""Share of the width for engines that compile nothing: a logarithmic axis has no zero."""


def traded(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose epoch time and compile time are known."""
    rows = measured(rows)
    return rows[rows["epoch_seconds"].notna() & rows["compile_seconds"].notna()]


def front(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the Pareto front, least compile time first.

    A row is on the front unless another row is at least as good in both times and better in one.
    """
    ordered = rows.sort_values(["compile_seconds", "epoch_seconds"], kind="stable")
    shortest_before = ordered["epoch_seconds"].cummin().shift(fill_value=float("inf"))
    return ordered[ordered["epoch_seconds"] < shortest_before]


def trade_off(name: str, rows: pd.DataFrame, ranked: pd.DataFrame) -> Drawing | None:
    """Draw the rows of one workload and interpreter; None if none has both times.

    ranked: the rows that may be on the front. The others are for comparison, with hollow marks.
    """
    rows, ranked = traded(rows), traded(ranked)
    if rows.empty:
        return None
    leading = front(ranked)
    scale, nothing = _compile_scale(rows)
    low, high = rows["epoch_seconds"].min(), rows["epoch_seconds"].max()
    plot = Plot(scale, times(low / 3, high * 3, "time of an epoch"))
    if len(leading):
        plot.line(_steps(plot, leading, nothing), "front")
    for part, kind in ((leading, "on"), (rows.drop(ranked.index), "ref"), (ranked.drop(leading.index), "off")):
        for row in each(part.sort_values("epoch_seconds")):
            _mark(plot, row, nothing, kind)
    where = f"{rows['workload'].iloc[0]}, {rows['interpreter'].iloc[0]}"
    names = listed(leading["engine"], len(leading)) or "none"
    title = f"Compile time against the time of an epoch on {where}. No engine is better in both than {names}."
    return plot.drawn(name, title)


def _compile_scale(rows: pd.DataFrame) -> tuple[Scale, float]:
    """Return the scale of compile time, and the value at which engines without one are drawn."""
    positive = rows["compile_seconds"][rows["compile_seconds"] > 0]
    if positive.empty:
        return Scale(0.1, 10.0, ((1.0, "none"),), "compile time"), 1.0
    low, high = positive.min() / 2, positive.max() * 3
    if (rows["compile_seconds"] > 0).all():
        return times(low, high, "compile time"), low
    nothing = low / (high / low) ** _STRIP
    scale = times(low, high, "compile time")
    beyond = nothing / (high / low) ** 0.03
    return Scale(beyond, high, ((nothing, "none"), *scale.ticks), scale.label), nothing


def _mark(plot: Plot, row: Any, nothing: float, kind: str) -> None:
    x = row.compile_seconds or nothing
    if not math.isnan(row.epoch_seconds_low):
        plot.line((plot.place(x, row.epoch_seconds_low), plot.place(x, row.epoch_seconds_high)), "spread")
    tip = f"{row.engine}: {compile_time(row.compile_seconds)} to compile, {epoch_time(row).text} an epoch"
    plot.mark(plot.place(x, row.epoch_seconds), kind, tip, str(row.engine), radius=5 if kind == "on" else 3.5)


def _steps(plot: Plot, leading: pd.DataFrame, nothing: float) -> list[tuple[float, float]]:
    """Return the staircase through the front, on to the right."""
    places = [plot.place(row.compile_seconds or nothing, row.epoch_seconds) for row in each(leading)]
    corners = [places[0]]
    for (_, before), (x, y) in pairwise(places):
        corners += [(x, before), (x, y)]
    return [*corners, (plot.x.end, places[-1][1])]
