"""Speedups over baseline with their intervals, by engine: which are significant, and which may be noise."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from zoomgrad.reports.charts.drawing import dots, style
from zoomgrad.reports.measured.findings import faster
from zoomgrad.reports.measured.table import each, in_order, largest, measured, smallest
from zoomgrad.results import units
from zoomgrad.results.record import BASELINE

ORDER = 3
SUBJECT = "headline"


def title(table: pd.DataFrame) -> str:
    """The number of faster engines and the range of their speedups, on the reference CPython if it was measured."""
    rows = _rows(table)
    at_home = rows[rows["on_reference"].astype(bool)]
    rows = rows if at_home.empty else at_home
    if rows.empty:
        return f"No engine was measured alongside {BASELINE} on any interpreter"
    rows = rows[rows["interpreter"] == in_order(rows, "interpreter")[0]]
    interpreter, number = rows["interpreter"].iloc[0], len(rows)
    # A speedup whose interval contains 1 may be noise; one without an interval counts as it is.
    sure = rows[rows["speedup_low"].fillna(rows["speedup"]) > 1]
    if sure.empty:
        return f"No engine is measurably faster than {BASELINE} on {interpreter}"
    least, most = smallest(sure, "speedup"), largest(sure, "speedup")
    if number == 1:
        return faster(most)
    share = f"All {number}" if len(sure) == number else f"{len(sure)} of {number}"
    if len(sure) == 1:
        return f"{share} engines is faster than {BASELINE} on {interpreter}: {most.engine}, {units.times(most.speedup)}"
    span = f"{units.times(least.speedup)} ({least.engine}) to {units.times(most.speedup)} ({most.engine})"
    return f"{share} engines are faster than {BASELINE} on {interpreter}: {span}"


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    return (
        f"A mark is the speedup over {BASELINE} on the same interpreter and the bar its 95 % interval; hollow: too few "
        "processes for one. If two bars overlap, either engine may be the faster one."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    return dots.size(_rows(table))


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of one workload."""
    rows = _rows(table)
    if rows.empty:
        style.nothing_to_draw(axes, f"No engine was measured alongside {BASELINE} on any interpreter.")
        return
    lows, highs = (rows[f"speedup_{end}"].fillna(rows["speedup"]) for end in ("low", "high"))
    style.log_axis(axes, "x", low=min(lows.min(), 1.0) / 1.5, high=max(highs.max(), 1.0) * 2, text=_tick)
    axes.axvline(1.0, color=style.MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
    height = dots.frame_rows(axes, rows)
    for row in each(rows):
        x, y, bars = row.speedup, height(row), style.error_bars(row, "speedup")
        axes.errorbar(x, y, xerr=bars, fmt="none", ecolor=style.TEXT, elinewidth=1.1, capsize=2.5)
        dots.mark(axes, table, row, x, y, hollow=bars is None, points=7 if bars else 8, text=_text(row))
    hollow = "no interval" if rows["speedup_low"].isna().any() else ""
    dots.legend(axes, table, rows, filled="", hollow=hollow)
    axes.set_xlabel(f"speedup over {BASELINE} on the same interpreter")


def _text(row: Any) -> str:
    interval = units.ratio_interval(row.speedup_low, row.speedup_high)
    times = f"{units.ratio(row.speedup)} the speed of {BASELINE} there ({interval})"
    return f"{times}, {units.duration(row.step_seconds)} a step"


def _rows(table: pd.DataFrame) -> pd.DataFrame:
    rows = measured(table)
    return rows[(rows["engine"] != BASELINE) & rows["speedup"].notna()]


def _tick(value: float) -> str:
    return f"{value:,.10g}×"
