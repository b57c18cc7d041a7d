"""Speedups from run to run, relative to each engine's first level: levels, single runs, and where a level changed."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator

from zoomgrad.reports.charts.drawing import style
from zoomgrad.reports.measured.table import each, in_order
from zoomgrad.results import units

ORDER = 14
SUBJECT = "history"
_NARROWEST = 1.25
"""The axis reaches at least this factor to both sides of 1; otherwise noise would fill it."""
_MOST_TICKS = 6


def title(table: pd.DataFrame) -> str:
    """The number of engines whose speedup changed."""
    where = f"{table['workload'].iloc[0]} on {table['interpreter'].iloc[0]}"
    changed = table[table["change"].notna()]["engine"].nunique()
    speedups = units.count(table["engine"].nunique(), "speedup")
    return f"{changed} of {speedups} on {where} changed in {units.count(table['run'].nunique(), 'run')}"


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    return (
        "Speedups over the engine's first level, on a logarithmic scale; runs are in order of time. A mark is the "
        "speedup in one run, and the bar through it the interval; a hollow mark has none. A horizontal line is a "
        "level, from which runs differ only by noise. A number is a change: the new level over the old."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    return 8.4, 4.0 + 0.12 * table["engine"].nunique()


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw `reports.sections.history.History.chart`."""
    columns = [f"speedup{end}" for end in ("", "_low", "_high")]
    first = table.groupby("engine", observed=True)["level"].transform("first")
    rows = table.assign(**{name: table[name] / first for name in (*columns, "level")})
    low, high = rows[columns].min().min(), rows[columns].max().max()
    axes.set_yscale("log")
    axes.set_ylim(min(low, 1 / _NARROWEST), max(high, _NARROWEST))
    # A change by a tenth needs ticks between powers of ten.
    axes.yaxis.set_major_locator(MaxNLocator(_MOST_TICKS))
    axes.yaxis.set_major_formatter(lambda x, _: f"{x:.3g}×")
    axes.yaxis.set_minor_locator(NullLocator())
    for engine in in_order(rows, "engine"):
        _series(axes, rows[rows["engine"] == engine], style.engine_colour(engine), engine)
    runs = rows.drop_duplicates("run").sort_values("place")
    # Count from the newest run, so that it is always named.
    shown = runs.iloc[::-1].iloc[:: -(-len(runs) // _MOST_TICKS)]
    axes.set_xticks(shown["place"].to_list(), [str(run).replace("T", "\n", 1) for run in shown["run"]])
    style.bare(axes, "left", "bottom")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    axes.set_ylabel("speedup over the first level")


def _series(axes: Axes, rows: pd.DataFrame, colour: style.Colour, engine: str) -> None:
    begins = [0, *(index for index, row in enumerate(each(rows)) if row.change == row.change), len(rows)]
    places = rows["place"].to_list()
    for begin, end in pairwise(begins):
        ends, level = [places[begin] - 0.3, places[end - 1] + 0.3], rows["level"].iloc[begin]
        axes.plot(ends, [level, level], color=colour, linewidth=2.2, label="" if begin else engine)
    for row in each(rows):
        bars = style.error_bars(row, "speedup")
        face = "none" if bars is None else colour
        axes.errorbar(row.place, row.speedup, yerr=bars, fmt="o", ms=5, mfc=face, mec=colour, ecolor=style.TEXT, lw=1.0)
        if row.change == row.change:
            at = row.place - 0.35, row.level
            text = axes.annotate(units.ratio(row.change), at, (-3, 0), textcoords="offset points", weight="bold")
            text.set(ha="right", va="center")
