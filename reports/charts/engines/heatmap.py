"""Heat map of step times: every engine on every interpreter, and the reason for every missing result."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from reports.charts.drawing.tiles import draw_tiles
from reports.charts.drawing.tiles import size as size
from reports.measured.headline import entries
from reports.measured.table import each, largest, measured, smallest
from results import units

ORDER = 6
SUBJECT = "headline"


def title(table: pd.DataFrame) -> str:
    """The range from the slowest cell to the fastest."""
    rows = measured(table)
    if rows.empty:
        return "No cell was measured"
    fastest, slowest = smallest(rows, "step_seconds"), largest(rows, "step_seconds")
    return (
        f"From {units.duration(slowest.step_seconds)} a step ({slowest.engine} on {slowest.interpreter}) "
        f"to {units.duration(fastest.step_seconds)} ({fastest.engine} on {fastest.interpreter})"
    )


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    return (
        "Darker is faster, on a logarithmic scale. A cell shows the time of a step and the speedup over baseline on "
        "the same interpreter. Hatched cells have no result, for the reason shown."
    )


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of one workload."""
    times = {(str(row.engine), str(row.interpreter)): float(row.step_seconds) for row in each(measured(table))}
    draw_tiles(axes, table, {cell: (entry.text, entry.speedup) for cell, entry in entries(table).items()}, times)
