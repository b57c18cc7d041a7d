"""Speedups from run to run, relative to each engine's first level: single runs, levels, and where a level changed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pandas as pd

from zoomgrad.reports.measured.table import each, in_order
from zoomgrad.reports.plot import Drawing, Plot, Scale, counts
from zoomgrad.results import units

_NARROWEST = 1.25
"""The axis reaches at least this factor to both sides of 1; otherwise noise would fill it."""
_MOST_TICKS = 4


def history(name: str, table: pd.DataFrame) -> Drawing:
    """Draw `reports.sections.history.History.chart`."""
    columns = [f"speedup{end}" for end in ("", "_low", "_high")]
    first = table.groupby("engine", observed=True)["level"].transform("first")
    rows = table.assign(**{name: table[name] / first for name in (*columns, "level")})
    low, high = rows[columns].min().min(), rows[columns].max().max()
    runs = rows.drop_duplicates("run").sort_values("place")
    # Count from the newest run, so that it is always named.
    shown = runs.iloc[::-1].iloc[:: -(-len(runs) // _MOST_TICKS)]
    ticks = tuple((float(row.place), str(row.run)[5:10]) for row in each(shown))
    last = float(rows["place"].max())
    # To the right of the lines is room for names.
    horizontal = Scale(-0.7, last + 0.4 * last + 1.0, ticks, "run", log=False)
    low, high = min(low, 1 / _NARROWEST) / 1.02, max(high, _NARROWEST) * 1.02
    vertical = counts(low, high, "speedup over the first level", "{:g}×".format)
    plot = Plot(horizontal, vertical)
    for number, engine in enumerate(in_order(rows, "engine")):
        _series(plot, rows[rows["engine"] == engine], f"s{number % 8 + 1}")
    where = f"{table['workload'].iloc[0]} on {table['interpreter'].iloc[0]}"
    changed = table[table["change"].notna()]["engine"].nunique()
    speedups = units.count(table["engine"].nunique(), "speedup")
    title = f"{changed} of {speedups} on {where} changed in {units.count(table['run'].nunique(), 'run')}"
    caption = (
        "A mark is a run, the bar through it the 95 % interval, and a line a level, from which runs differ by noise."
    )
    return plot.drawn(name, title, f"{title}. {caption} A number is a change: the new level over the old.")


def _series(plot: Plot, rows: pd.DataFrame, kind: str) -> None:
    begins = [0, *(index for index, row in enumerate(each(rows)) if row.change == row.change), len(rows)]
    places = [float(place) for place in rows["place"]]
    for begin, end in pairwise(begins):
        level = float(rows["level"].iloc[begin])
        plot.line((plot.place(places[begin] - 0.3, level), plot.place(places[end - 1] + 0.3, level)), kind)
    for number, row in enumerate(each(rows), 1):
        if row.speedup_low == row.speedup_low:
            plot.line((plot.place(row.place, row.speedup_low), plot.place(row.place, row.speedup_high)), "spread")
        plot.mark(plot.place(row.place, row.speedup), kind, _tip(row), str(row.engine) if number == len(rows) else "")
        if row.change == row.change:
            x, y = plot.place(row.place - 0.35, row.level)
            plot.text((x - 3, y + 4), units.ratio(row.change), "end", "name on")


def _tip(row: Any) -> str:
    return f"{row.engine}, {row.run}: {units.ratio(row.speedup)} its first level"
