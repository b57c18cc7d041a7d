"""Curves over the size of the graph, one for each engine and interpreter: shared by both growth charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from reports.charts.drawing import style
from reports.charts.drawing.labels import label_column
from reports.measured.table import in_order

_NAMES_SHARE = 0.24
"""Share of the chart's width for the engines' names right of their curves."""

CAPTION = (
    "Each mark is one mlp-… workload. Both axes are logarithmic; the grey line is growth in proportion to the graph. "
    "A colour is an engine; a shape and a line style are an interpreter."
)


def size(points: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches: room for every name."""
    return 8.4, max(4.6, 1.4 + 0.19 * len(in_order(points, "engine")))


def draw_curves(
    axes: Axes,
    points: pd.DataFrame,
    column: str,
    *,
    label: str,
    text: Callable[[float], str],
    names: Mapping[tuple[str, str], str] | None = None,
) -> None:
    """Draw a column of `reports.sections.compiling.growth.points` over the number of tape rows.

    text: formats a tick of that column. names: names of curves by engine and interpreter, if not the engine's.
    """
    points = points[points[column].notna()]
    if points.empty:
        style.nothing_to_draw(axes, f"No {label} was measured.")
        return
    sizes, values = points["tape_rows"], points[column]
    left, right = float(sizes.min()) / 1.5, float(sizes.max()) * 1.3
    beyond = right * (right / left) ** (_NAMES_SHARE / (1 - _NAMES_SHARE))
    style.log_axis(axes, "x", low=left, high=beyond, text=lambda rows: f"{rows:,.0f}")
    style.log_axis(axes, "y", low=float(values.min()) / 2, high=float(values.max()) * 2, text=text)
    axes.set_xticks([rows for rows in axes.get_xticks() if rows <= right])
    axes.set_xlabel("rows of the tape")
    axes.set_ylabel(label)
    style.bare(axes, "left", "bottom")
    _proportion(axes, points, column)
    for engine in in_order(points, "engine"):
        for interpreter in in_order(points, "interpreter"):
            curve = points[(points["engine"] == engine) & (points["interpreter"] == interpreter)]
            axes.plot(
                curve["tape_rows"],
                curve[column],
                linestyle=style.interpreter_line(points, interpreter),
                linewidth=1.3,
                path_effects=style.EDGE,
                color=style.engine_colour(points, engine),
                marker=style.interpreter_marker(points, interpreter),
                markersize=5,
                markeredgecolor=style.TEXT,
                markeredgewidth=0.4,
            )
    _legend(axes, points)
    ends = [_end(points, column, engine, names or {}) for engine in in_order(points, "engine")]
    label_column(axes, ends, right * 1.05)


def _proportion(axes: Axes, points: pd.DataFrame, column: str) -> None:
    """Draw a line of slope 1 that ends at the median value of the largest graph."""
    largest = points["tape_rows"].max()
    middle = points.loc[points["tape_rows"] == largest, column].median()
    ends = [points["tape_rows"].min(), largest]
    axes.plot(ends, [middle * rows / largest for rows in ends], color=style.MUTED, linewidth=5, alpha=0.25, zorder=0.5)


def _end(
    points: pd.DataFrame, column: str, engine: str, names: Mapping[tuple[str, str], str]
) -> tuple[float, float, str]:
    """Return where an engine's longest curve ends, and the name to write there."""
    rows = points[points["engine"] == engine]
    last = rows[rows["tape_rows"] == rows["tape_rows"].max()].iloc[0]
    return float(last["tape_rows"]), float(last[column]), names.get((engine, str(last["interpreter"])), engine)


def _legend(axes: Axes, points: pd.DataFrame) -> None:
    handles = [
        Line2D(
            [],
            [],
            label=interpreter,
            color=style.MUTED,
            linestyle=style.interpreter_line(points, interpreter),
            marker=style.interpreter_marker(points, interpreter),
            markeredgecolor=style.TEXT,
        )
        for interpreter in in_order(points, "interpreter")
    ]
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, frameon=False, handlelength=3)
