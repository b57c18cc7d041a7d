"""Speedups from run to run, with a strip for each engine: its level, every run's value, and where the level changed."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from reports.charts.drawing import style
from reports.measured.table import each, in_order, largest
from results import units

ORDER = 14
SUBJECT = "history"
_STRIP_INCHES = 0.5
_LEAST_REACH = math.log(1.15)
"""Half the height of a strip is at least this factor, as a logarithm; otherwise noise would fill the strip."""
_FILLED = 0.8
"""Share of a strip's height that marks may fill."""
_MOST_TICKS = 6


def title(table: pd.DataFrame) -> str:
    """The number of engines whose speedup changed, and the largest of their newest changes."""
    where = f"{table['workload'].iloc[0]} on {table['interpreter'].iloc[0]}"
    changed = table[table["change"].notna()]
    runs = units.count(table["run"].nunique(), "run")
    if changed.empty:
        return f"No speedup on {where} changed in {runs}"
    newest = changed.sort_values("run").groupby("engine", observed=True).tail(1)
    most = largest(newest.assign(size=np.abs(np.log(newest["change"]))), "size")
    number = f"{len(newest)} of {units.count(table['engine'].nunique(), 'speedup')} on {where} changed in {runs}"
    return f"{number}; {most.engine}: {units.ratio(most.change)} since {most.run}"


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    return (
        "Each strip shows one engine, on a logarithmic scale of its own; runs are in order of time. A mark is the "
        "speedup in one run, and the bar through it the interval; a hollow mark has none. A horizontal line is a "
        "level, from which runs differ only by noise; the number on the right is the newest. A vertical line is a "
        "change, labelled with the ratio of the new level to the old."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    return 8.4, 1.1 + _STRIP_INCHES * len(in_order(table, "engine"))


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw `reports.sections.history.History.chart`."""
    engines = in_order(table, "engine")
    last = float(table["place"].max())
    axes.set_xlim(-0.4, last + 0.4)
    axes.set_ylim(len(engines) - 0.5, -0.5)
    for strip, engine in enumerate(engines):
        if strip:
            axes.axhline(strip - 0.5, color=style.MUTED, linewidth=0.5, alpha=0.25, zorder=0.5)
        rows = table[table["engine"] == engine]
        _strip(axes, table, rows, float(strip))
        newest = rows["level"].iloc[-1]
        axes.annotate(units.ratio(newest), (last + 0.4, strip), (6, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(engines)), engines)
    axes.tick_params(axis="y", length=0)
    _name_runs(axes, table)
    style.bare(axes, "left", "bottom")


def _strip(axes: Axes, table: pd.DataFrame, rows: pd.DataFrame, middle: float) -> None:
    ends = [np.log(rows[name]) for name in ("speedup", "speedup_low", "speedup_high")]
    low, high = (float(edge) for edge in (min(end.min() for end in ends), max(end.max() for end in ends)))
    centre = (low + high) / 2
    scale = _FILLED / 2 / max((high - low) / 2, _LEAST_REACH)
    colour = style.engine_colour(str(rows["engine"].iloc[0]))

    def height(speedup: float) -> float:
        return middle - (math.log(speedup) - centre) * scale

    begins = [0, *(index for index, row in enumerate(each(rows)) if row.change == row.change), len(rows)]
    places = rows["place"].to_list()
    for begin, end in pairwise(begins):
        y = height(rows["level"].iloc[begin])
        axes.plot([places[begin] - 0.3, places[end - 1] + 0.3], [y, y], color=colour, linewidth=2.2, zorder=1.5)
    for row in each(rows):
        hollow = row.speedup_low != row.speedup_low
        if not hollow:
            bounds = [height(row.speedup_low), height(row.speedup_high)]
            axes.plot([row.place, row.place], bounds, color=style.TEXT, linewidth=1.0, zorder=2)
        face, edge = ("none", colour) if hollow else (colour, style.TEXT)
        axes.plot(row.place, height(row.speedup), "o", ms=5.5, mfc=face, mec=edge, mew=1.4 if hollow else 0.5, zorder=3)
        if row.change == row.change:
            _mark_change(axes, row.place - 0.5, middle, row.change)


def _mark_change(axes: Axes, x: float, middle: float, change: float) -> None:
    axes.plot([x, x], [middle - 0.5, middle + 0.5], color=style.TEXT, linewidth=1.0, linestyle=(0, (3, 2)), zorder=1)
    text = axes.annotate(units.ratio(change), (x, middle - 0.5), (-3, -2), textcoords="offset points")
    text.set(ha="right", va="top", fontsize=8, weight="bold")


def _name_runs(axes: Axes, table: pd.DataFrame) -> None:
    runs = table.drop_duplicates("run").sort_values("place")
    every = -(-len(runs) // _MOST_TICKS)
    # Count from the newest run, so that it is always named.
    shown = runs.iloc[::-1].iloc[::every]
    axes.set_xticks(shown["place"].to_list(), [_moment(str(run)) for run in shown["run"]])


def _moment(run: str) -> str:
    """Return a run's name on two lines: the day, and the rest."""
    day, _, rest = run.partition("T")
    return f"{day}\n{rest}" if rest else run
