"""Compile time against rows of the graph, one line for each engine."""

from __future__ import annotations

import pandas as pd

from zoomgrad.reports.measured.table import each, in_order
from zoomgrad.reports.plot import Drawing, Plot, counts, times
from zoomgrad.results import units


def growth(name: str, title: str, points: pd.DataFrame) -> Drawing:
    """Draw the points of one interpreter: `tape_rows` and `compile_seconds` of each engine."""
    rows, seconds = points["tape_rows"], points["compile_seconds"]
    # To the right of the lines is room for names.
    plot = Plot(
        counts(rows.min() / 1.5, rows.max() * (rows.max() / rows.min()) ** 0.4, "rows of the graph", "{:,.0f}".format),
        times(seconds.min() / 2, seconds.max() * 2, "compile time"),
    )
    for number, engine in enumerate(in_order(points, "engine")):
        kind, of_engine = f"s{number % 8 + 1}", points[points["engine"] == engine]
        tips = [
            f"{engine}: {units.duration(row.compile_seconds)} for {units.count(int(row.tape_rows), 'row')}"
            for row in each(of_engine)
        ]
        places = [plot.place(row.tape_rows, row.compile_seconds) for row in each(of_engine)]
        plot.series(places, kind, tips, engine)
    return plot.drawn(name, title)
