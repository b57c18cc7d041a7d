"""Memory against the size of the graph: the other cost of compiling."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes

from reports.charts.drawing import style
from reports.charts.drawing.curves import CAPTION, draw_curves
from reports.charts.drawing.curves import size as size
from reports.sections.compiling.growth import growths
from results import units

ORDER = 12
SUBJECT = "growth"


def title(table: pd.DataFrame) -> str:
    """The range of memory per row."""
    fitted = [one for one in growths(table) if not math.isnan(one.row_bytes) and one.row_bytes > 0]
    if not fitted:
        return "Memory against the size of the graph"
    least, most = (choose(fitted, key=lambda one: one.row_bytes) for choose in (min, max))
    if least == most:
        return f"{least.engine} on {least.interpreter} takes {units.size(least.row_bytes)} of memory per row"
    return (
        f"From {units.size(least.row_bytes)} of memory per row ({least.engine} on {least.interpreter}) "
        f"to {units.size(most.row_bytes)} ({most.engine} on {most.interpreter})"
    )


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    return (
        f"{CAPTION} Memory is the peak resident set of the worker or its largest compiler, whichever is larger. Curves "
        "start flat, at the memory that an interpreter and a compiler take by themselves."
    )


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of `reports.sections.compiling.growth.points`."""
    draw_curves(axes, table, "memory_bytes", label="peak memory", text=style.bytes_tick)
