"""Where compile time goes: the seconds of each phase, by engine."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from reports.charts.drawing import style
from reports.measured.table import PHASES, at_home, each, in_order, measured, phase_column
from reports.text.figures import share
from results import units

ORDER = 4
SUBJECT = "headline"

_COLOURS = {phase: style.series_colour(index) for index, phase in enumerate(PHASES)}
_LEAST = 0.1
"""Least width of a bar, as a share of the axis, with room for its figure."""
_LONG = 12.0
"""The axis ends at this many times the median bar: longer bars are cut, and their figures say so."""


def title(table: pd.DataFrame) -> str:
    """The phase that is the longest for most engines, on the reference CPython if it was measured."""
    rows = _rows(table)
    if rows.empty:
        return "Nothing was compiled"
    rows = rows[rows["interpreter"] == in_order(rows, "interpreter")[0]]
    longest = [(max(parts, key=lambda phase: parts[phase]), row) for row in each(rows) if (parts := _parts(row))]
    names = [phase for phase, _ in longest]
    phase = max(PHASES, key=names.count)
    most: Any = max((row for name, row in longest if name == phase), key=lambda row: _parts(row)[phase])
    where = f"{units.count(names.count(phase), 'engine')} of {len(names)} on {most.interpreter}"
    return f"“{phase}” is the longest phase of {where}, up to {share(_parts(most)[phase])} ({most.engine})"


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    return (
        "A bar is an engine's compile time in seconds, divided into phases in the order in which they run; to its "
        "right is the total with its 95 % interval. A bar with an arrow is longer than the axis; the chart shows the "
        "reference CPython and every PyPy."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    rows = _rows(table)
    return 8.4, max(2.2, 1.2 + 0.25 * (len(rows) + 1.4 * len(in_order(rows, "interpreter"))))


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of one workload."""
    rows = _rows(table)
    if rows.empty:
        style.nothing_to_draw(axes, "Nothing was compiled.")
        return
    totals = rows["compile_seconds"]
    end = min(float(totals.max()), _LONG * float(totals.median()))
    heights: dict[float, str] = {}
    height = 0.0
    for interpreter in in_order(rows, "interpreter"):
        axes.annotate(interpreter, (0, height), (7, 0), textcoords="offset points", va="center", weight="bold")
        for row in each(rows[rows["interpreter"] == interpreter].sort_values("engine", kind="stable")):
            height += 1
            heights[height] = str(row.engine)
            _bar(axes, height, row, end)
            place = min(row.compile_seconds, end), height
            text = f"{'→ ' if row.compile_seconds > end else ''}{_total(row)}"
            axes.annotate(text, place, (7, 0), textcoords="offset points", va="center", fontsize=9)
        height += 1.4
    axes.set_xlim(0, end * 1.5)  # room for the totals
    axes.set_ylim(height - 0.6, -0.7)
    axes.set_yticks(list(heights), list(heights.values()))
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.set_xticks([seconds for seconds in axes.get_xticks() if 0 <= seconds <= end])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: units.duration(seconds) if seconds else "0"))
    axes.set_xlabel("compile time", x=0.5 / 1.5)
    style.bare(axes, "left", "bottom")
    axes.spines["bottom"].set_bounds(0, end)
    handles = [
        Patch(facecolor=colour, edgecolor=style.TEXT, linewidth=0.4, label=phase) for phase, colour in _COLOURS.items()
    ]
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5 / 1.5, 1.0), ncols=len(PHASES), frameon=False)


def _bar(axes: Axes, height: float, row: Any, end: float) -> None:
    left = 0.0
    for phase, part in _parts(row).items():
        colour, seconds = _COLOURS[phase], part * row.compile_seconds
        width = min(seconds, end - left)
        (bar,) = axes.barh(height, width, left=left, height=0.72, color=colour, edgecolor=style.TEXT, linewidth=0.4)
        style.tip(bar, row, f"{phase} {units.duration(seconds)} of {_total(row)} to compile")
        if width >= _LEAST * end and width == seconds:
            ink = style.ink(colour)
            text = units.duration(seconds)
            axes.text(left + width / 2, height, text, color=ink, ha="center", va="center", fontsize=7)
        left += width


def _total(row: Any) -> str:
    interval = units.duration_interval(row.compile_seconds_low, row.compile_seconds_high)
    text = units.duration(row.compile_seconds)
    return text if interval == units.ABSENT else f"{text} ({interval})"


def _parts(row: Any) -> dict[str, float]:
    """Return the share of each phase, in order, of the phases' sum, which may differ from the median total."""
    seconds = {phase: float(getattr(row, phase_column(phase))) for phase in PHASES}
    known = {phase: value for phase, value in seconds.items() if value > 0}
    return {phase: value / sum(known.values()) for phase, value in known.items()}


def _rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that compiled, on the reference CPython and every PyPy; on any interpreter if none did there."""
    rows = measured(table)
    return at_home(rows[rows["compile_seconds"] > 0])
