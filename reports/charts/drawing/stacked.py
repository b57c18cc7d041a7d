"""Stacked bars, one for each engine, grouped by interpreter: shared by the charts of samples and of steps.

Rows have `engine`, `interpreter`, `group` and `share`; the shares of a bar add up to 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import Patch

from zoomgrad.reports.charts.drawing import style
from zoomgrad.reports.charts.drawing.style import Colour
from zoomgrad.reports.measured.table import in_order
from zoomgrad.reports.text.figures import share

COLUMNS = 4
"""Columns of the legend."""
_LEAST = 0.08
"""Least share with room for its figure."""
_VISIBLE = 0.001
"""Least share that is drawn."""

Parts = Mapping[str, list[str]]
"""Part of a bar -> the groups that it sums up."""


def size(table: pd.DataFrame, parts: Parts) -> tuple[float, float]:
    """Width and height in inches."""
    bars = len(table[["engine", "interpreter"]].drop_duplicates())
    legend_rows = -(-len(parts) // COLUMNS)
    return 8.4, 0.9 + 0.27 * (bars + 1.4 * len(in_order(table, "interpreter"))) + 0.24 * legend_rows


def draw_bars(
    axes: Axes,
    table: pd.DataFrame,
    parts: Parts,
    fixed: Mapping[str, str],
    *,
    label: str,
    end: Callable[[pd.DataFrame], str] | None = None,
) -> None:
    """Draw the bars and their legend. fixed: colours of some parts. end: makes the text after a bar from its rows."""
    colours = _colours(parts, fixed)
    heights: dict[float, str] = {}
    height = 0.0
    for interpreter in in_order(table, "interpreter"):
        rows = table[table["interpreter"] == interpreter]
        axes.annotate(interpreter, (0, height), (7, 0), textcoords="offset points", va="center", weight="bold")
        for engine in in_order(rows, "engine"):
            height += 1
            heights[height] = engine
            left = 0.0
            for part, groups in parts.items():
                width, colour = share_of(rows, engine, *groups), colours[part]
                if width < _VISIBLE:
                    continue
                axes.barh(height, width, left=left, height=0.72, color=colour, edgecolor=style.TEXT, linewidth=0.4)
                if width >= _LEAST:
                    ink = style.ink(colour)
                    axes.text(left + width / 2, height, share(width), color=ink, ha="center", va="center", fontsize=8)
                left += width
            if end:
                axes.text(1.01, height, end(rows[rows["engine"] == engine]), ha="left", va="center", fontsize=8.5)
        height += 1.4
    axes.set_xlim(0, 1)
    axes.set_ylim(height - 0.6, -0.7)
    axes.set_yticks(list(heights), list(heights.values()))
    axes.tick_params(axis="y", length=0)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel(label)
    style.bare(axes, "left", "bottom")
    _legend(axes, colours)


def share_of(rows: pd.DataFrame, engine: str, *groups: str) -> float:
    """Return the total share of some groups in an engine's bar."""
    return float(rows.loc[(rows["engine"] == engine) & rows["group"].isin(groups), "share"].sum())


def _colours(parts: Iterable[str], fixed: Mapping[str, str]) -> dict[str, Colour | str]:
    free = (colour for colour in map(style.series_colour, itertools.count()) if to_hex(colour) not in fixed.values())
    return {part: fixed.get(part) or next(free) for part in parts}


def _legend(axes: Axes, colours: Mapping[str, Colour | str]) -> None:
    handles = [
        Patch(facecolor=colour, edgecolor=style.TEXT, linewidth=0.4, label=part) for part, colour in colours.items()
    ]
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.legend(handles=handles, loc="outside lower left", ncols=COLUMNS, frameon=False, fontsize=8.5)
