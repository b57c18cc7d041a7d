"""Compile time against the size of the graph: whether an engine can have a graph ten times as large."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes

from reports.charts import style
from reports.charts.curves import CAPTION, draw_curves
from reports.charts.curves import size as size
from reports.growth import STEEP, growths

ORDER = 9
SUBJECT = "growth"


def title(table: pd.DataFrame) -> str:
    """The steepest curve, or that there is none."""
    fitted = [one for one in growths(table) if not math.isnan(one.exponent)]
    if not fitted:
        return "Compile time against the size of the graph"
    steepest = max(fitted, key=lambda one: one.exponent)
    if steepest.steep:
        where = f"{steepest.engine} on {steepest.interpreter}"
        return f"Compile time of {where} grows as the graph to the power {steepest.exponent:.2f}"
    return f"No engine's compile time grows faster than the graph to the power {STEEP}"


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    return f"{CAPTION} A curve steeper than the grey line compiles each row of a larger graph more slowly."


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of `reports.growth.points`."""
    draw_curves(axes, table, "compile_seconds", label="compile time, all phases", text=style.tick)
