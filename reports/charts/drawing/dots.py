"""Rows of dots, one row for each engine and one dot for each interpreter: for the chart of speedups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from zoomgrad.reports.charts.drawing import style
from zoomgrad.reports.measured.outcome import IDENTICAL
from zoomgrad.reports.measured.table import each, in_order

_ENGINE_INCHES, _LINE_INCHES = 0.18, 0.13
"""Height of a row without lines, and of the line that each interpreter has in it."""


def size(rows: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches: an engine's row has one line for each interpreter with a mark in it."""
    return 8.4, max(2.4, 1.2 + sum(_row_inches(rows).values()))


def frame_rows(axes: Axes, rows: pd.DataFrame) -> Callable[[Any], float]:
    """Separate and name the rows; return a function that gives a cell's y: its interpreter's line in its engine's row.

    An engine that does not promise identical bits has its promise below its name.
    """
    caveats = {str(row.engine): "" if row.promise == IDENTICAL else f"\n{row.promise}" for row in each(rows)}
    places: dict[tuple[str, str], float] = {}
    middles: dict[str, float] = {}
    top = 0.0
    for engine, inches in _row_inches(rows).items():
        if top:
            axes.axhline(top, color=style.MUTED, linewidth=0.5, alpha=0.25, zorder=0.5)
        for line, interpreter in enumerate(_lines(rows, engine)):
            places[engine, interpreter] = top + _ENGINE_INCHES / 2 + _LINE_INCHES * (line + 0.5)
        middles[engine] = top + inches / 2
        top += inches
    axes.set_ylim(top, 0.0)
    axes.set_yticks(list(middles.values()), [f"{engine}{caveats[engine]}" for engine in middles], linespacing=1.0)
    axes.tick_params(axis="y", length=0)
    style.bare(axes, "left", "bottom")
    return lambda row: places[row.engine, row.interpreter]


def mark(
    axes: Axes, table: pd.DataFrame, row: Any, x: float, y: float, *, hollow: bool, points: float = 7, text: str
) -> None:
    """Draw the mark of a cell in its engine's colour and its interpreter's shape. text: for its tooltip."""
    colour, shape = style.engine_colour(row.engine), style.interpreter_marker(table, row.interpreter)
    if hollow:
        # Without an edge, a ring is hard to see.
        axes.plot(x, y, shape, ms=points, mfc="none", mec=style.TEXT, mew=2.4)
        (drawn,) = axes.plot(x, y, shape, ms=points, mfc="none", mec=colour, mew=1.5)
    else:
        (drawn,) = axes.plot(x, y, shape, ms=points, mfc=colour, mec=style.TEXT, mew=0.5)
    style.tip(drawn, row, text)


def legend(axes: Axes, table: pd.DataFrame, rows: pd.DataFrame, *, filled: str, hollow: str) -> None:
    """Draw the legend: interpreters by shape, then filled and hollow marks unless their text is empty."""
    handles = [
        _key(interpreter, style.interpreter_marker(table, interpreter), face=style.MUTED, edge=style.TEXT)
        for interpreter in in_order(rows, "interpreter")
    ]
    shape = style.interpreter_marker(table, in_order(rows, "interpreter")[0])
    if filled:
        handles.append(_key(filled, shape, face=style.TEXT, edge=style.TEXT))
    if hollow:
        handles.append(_key(hollow, shape, face="none", edge=style.TEXT))
    handles += style.family_keys(in_order(rows, "engine"))
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, frameon=False)


def _key(label: str, marker: str, *, face: str, edge: str) -> Line2D:
    return Line2D([], [], linestyle="none", label=label, marker=marker, markerfacecolor=face, markeredgecolor=edge)


def _lines(rows: pd.DataFrame, engine: str) -> list[str]:
    return in_order(rows[rows["engine"] == engine], "interpreter")


def _row_inches(rows: pd.DataFrame) -> dict[str, float]:
    return {engine: _ENGINE_INCHES + _LINE_INCHES * len(_lines(rows, engine)) for engine in in_order(rows, "engine")}
