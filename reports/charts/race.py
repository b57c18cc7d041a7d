"""The README's picture: a bar for each engine's time of an epoch, fastest first, beside its compile time and bits."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from zoomgrad.reports.measured.table import each
from zoomgrad.reports.plot import Drawing, Plot, Scale, times
from zoomgrad.reports.text.figures import bits, compile_time, epoch_time

WIDTH, LEFT, RIGHT = 760.0, 175.0, 275.0
_ROW = 24.0


def race(name: str, rows: pd.DataFrame, ranked: Collection[object]) -> Drawing:
    """Draw measured rows of one workload and interpreter. ranked: index of the rows that are not for comparison."""
    rows = rows.sort_values("epoch_seconds", kind="stable")
    horizontal = times(rows["epoch_seconds"].min() / 3, rows["epoch_seconds"].max(), "time of an epoch, log scale")
    vertical = Scale(len(rows) - 0.5, -0.5, (), "", log=False)
    plot = Plot(horizontal, vertical, height=68 + _ROW * len(rows), width=WIDTH, left=LEFT, right=RIGHT)
    columns = ((plot.x.end + 85, "an epoch"), (plot.x.end + 160, "compile"), (WIDTH - 6, "bits"))
    for x, heading in columns:
        plot.text((x, 14), heading, "end", "axis")
    for place, (index, row) in enumerate(zip(rows.index, each(rows), strict=True)):
        y = plot.y.at(place)
        kind = "on" if index in ranked else "ref"
        plot.line(((plot.x.begin, y), (plot.x.at(row.epoch_seconds), y)), f"bar {kind}")
        plot.text((LEFT - 8, y + 4), str(row.engine), "end", f"name {kind}")
        texts = (epoch_time(row).text, compile_time(row.compile_seconds), bits(row).text)
        for (x, _), text in zip(columns, texts, strict=True):
            plot.text((x, y + 4), text, "end", "name")
    where = f"{rows['workload'].iloc[0]} on {rows['interpreter'].iloc[0]}"
    return plot.drawn(name, f"Time of an epoch of {where}, by engine, with compile time")
