"""Speedups from run to run, relative to each engine's first run."""

from __future__ import annotations

import pandas as pd

from zoomgrad.reports.measured.races import SPEEDUP
from zoomgrad.reports.measured.table import each, in_order
from zoomgrad.reports.plot import Drawing, Plot, Scale, counts
from zoomgrad.results import units

_NARROWEST = 1.25
"""The axis reaches at least this factor to both sides of 1; otherwise noise would fill it."""
_MOST_TICKS = 4


def history(name: str, rows: pd.DataFrame) -> Drawing:
    """Draw `reports.sections.history.History.chart`."""
    columns = list(SPEEDUP)
    low, high = rows[columns].min().min(), rows[columns].max().max()
    runs = rows.drop_duplicates("run").sort_values("place")
    # Count from the newest run, so that it is always named.
    shown = runs.iloc[::-1].iloc[:: -(-len(runs) // _MOST_TICKS)]
    ticks = tuple((float(row.place), str(row.run)[5:10]) for row in each(shown))
    last = float(rows["place"].max())
    # To the right of the lines is room for names.
    horizontal = Scale(-0.7, last + 0.4 * last + 1.0, ticks, "run", log=False)
    low, high = min(low, 1 / _NARROWEST) / 1.02, max(high, _NARROWEST) * 1.02
    plot = Plot(horizontal, counts(low, high, "speedup over the first run's", "{:g}×".format))
    for number, engine in enumerate(in_order(rows, "engine")):
        _series(plot, engine, rows[rows["engine"] == engine], f"s{number % 8 + 1}")
    where = f"{rows['workload'].iloc[0]} on {rows['interpreter'].iloc[0]}"
    title = f"Speedups on {where} in {units.count(len(runs), 'run')}"
    return plot.drawn(name, title, f"{title}. A mark is a run, the bar through it the 95 % interval.")


def _series(plot: Plot, engine: str, rows: pd.DataFrame, kind: str) -> None:
    for row in each(rows):
        if row.speedup_low == row.speedup_low:
            plot.line((plot.place(row.place, row.speedup_low), plot.place(row.place, row.speedup_high)), "spread")
    tips = [f"{engine}, {row.run}: {units.ratio(row.speedup)} the first run's" for row in each(rows)]
    plot.series([plot.place(row.place, row.speedup) for row in each(rows)], kind, tips, engine)
