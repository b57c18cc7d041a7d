"""Compile time against the size of the graph: shows whether an engine can handle a graph ten times as large."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes

from reports.charts.drawing import style
from reports.charts.drawing.curves import CAPTION, draw_curves
from reports.charts.drawing.curves import size as size
from reports.sections.compiling.growth import LARGE_ROWS, MIN_POINTS, STEEP, growths

ORDER = 11
SUBJECT = "growth"


def title(table: pd.DataFrame) -> str:
    """The steepest curve, or that no curve is steep."""
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
    return (
        f"{CAPTION} If a curve is steeper than the grey line, each row takes longer to compile in a larger graph. The "
        "number after an engine's name is its fitted exponent; 1.00 is in proportion to the graph. The fit uses graphs "
        f"of {LARGE_ROWS:,} rows or more, if there are at least {MIN_POINTS}. With several interpreters, the exponent "
        "is that of the curve that ends at the name."
    )


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of `reports.sections.compiling.growth.points`."""
    exponents = {
        (one.engine, one.interpreter): f"{one.engine}, {one.exponent:.2f}"
        for one in growths(table)
        if not math.isnan(one.exponent)
    }
    draw_curves(axes, table, "compile_seconds", label="compile time, all phases", text=style.tick, names=exponents)
