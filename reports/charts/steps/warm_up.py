"""Run sequences: shows whether a process had settled before its values were timed."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from zoomgrad.reports.charts.drawing import style
from zoomgrad.reports.charts.drawing.labels import label_marks
from zoomgrad.reports.measured.sequences import NOTABLE, changing
from zoomgrad.reports.measured.table import each, in_order, largest
from zoomgrad.results import units

ORDER = 5
SUBJECT = "sequences"

_WIDE = 3.0
"""The axis is logarithmic if the largest value exceeds the smallest by this factor."""


def title(table: pd.DataFrame) -> str:
    """The cell that starts slowest."""
    if table.empty:
        return "No sequence of values was recorded"
    slowest = largest(table[table["number"] == 1], "relative")
    if slowest.relative < NOTABLE:
        span = units.ratio_interval(float(table["relative"].min()), float(table["relative"].max()))
        return f"No cell starts slowly: values are {span} the cell's time of a step"
    where = f"{slowest.engine} on {slowest.interpreter}"
    return f"{where} starts slowest: its first value takes {units.times(slowest.relative)} its time of a step"


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    workload = f" on {table['workload'].iloc[0]}" if len(table) else ""
    return (
        f"Successive values of a process{workload} over the cell's time of a step, medians over processes, for the "
        f"cells with a value more than a factor of {NOTABLE} from it; the dashed part is warm-up, which that time "
        "excludes."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    return 8.4, 4.8


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of `reports.measured.sequences.values`."""
    if table.empty:
        style.nothing_to_draw(axes, "No sequence of values was recorded.")
        return
    table = changing(table)
    if table.empty:
        style.nothing_to_draw(axes, f"All values are within a factor of {NOTABLE} of their cell's time of a step.")
        return
    _scales(axes, table)
    axes.axhline(1.0, color=style.MUTED, linewidth=1.0, zorder=0.5)
    farthest: dict[str, Any] = {}
    for engine in in_order(table, "engine"):
        for interpreter in in_order(table, "interpreter"):
            curve = table[(table["engine"] == engine) & (table["interpreter"] == interpreter)]
            if curve.empty:
                continue
            row = max(each(curve), key=_distance)
            _line(axes, table, curve)
            if engine not in farthest or _distance(row) > _distance(farthest[engine]):
                farthest[engine] = row
    _legend(axes, table)
    names = [(float(row.number), float(row.relative), engine) for engine, row in farthest.items()]
    label_marks(axes, names)


def _distance(row: Any) -> float:
    """Return the distance from the cell's time of a step in either direction, as a logarithm."""
    return abs(math.log(row.relative))


def _scales(axes: Axes, table: pd.DataFrame) -> None:
    low, high, last = float(table["relative"].min()), float(table["relative"].max()), int(table["number"].max())
    if high / low > _WIDE:
        style.log_axis(axes, "y", low=low / 1.3, high=high * 1.3, text=_tick)
    else:
        room = max(high - low, 0.1) * 0.15
        axes.set_ylim(low - room, high + room)
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
        axes.grid(True, axis="y", color=style.MUTED, alpha=0.3, linewidth=0.6)
    axes.set_xlim(0.6, last + 0.4)
    axes.set_xticks(range(1, last + 1, max(1, -(-last // 12))))
    axes.set_xlabel("value of a process")
    axes.set_ylabel("value over the cell's time of a step")
    style.bare(axes, "left", "bottom")


def _line(axes: Axes, table: pd.DataFrame, curve: pd.DataFrame) -> None:
    first = next(each(curve))
    options: dict[str, Any] = {
        "color": style.engine_colour(first.engine),
        "marker": style.interpreter_marker(table, first.interpreter),
        "markersize": 5,
        "markeredgecolor": style.TEXT,
        "markeredgewidth": 0.4,
        "linewidth": 1.3,
        "path_effects": style.EDGE,
        "zorder": 2.5,
    }
    warming = int(curve["warm_up"].sum())
    # The dashed part reaches to the first timed value, so that the line has no gap.
    parts = ((curve.iloc[: warming + 1], (0, (3, 2))), (curve.iloc[warming:], "-")) if warming else ((curve, "-"),)
    for part, linestyle in parts:
        (line,) = axes.plot(part["number"], part["relative"], linestyle=linestyle, **options)
        span = units.ratio_interval(float(curve["relative"].min()), float(curve["relative"].max()))
        style.tip(line, first, f"{len(curve)} values, {span} the time of a step")


def _legend(axes: Axes, table: pd.DataFrame) -> None:
    handles = [
        Line2D(
            [],
            [],
            linestyle="none",
            label=interpreter,
            marker=style.interpreter_marker(table, interpreter),
            markerfacecolor=style.MUTED,
            markeredgecolor=style.TEXT,
        )
        for interpreter in in_order(table, "interpreter")
    ]
    if table["warm_up"].astype(bool).any():
        handles.append(Line2D([], [], label="warm-up", color=style.MUTED, linestyle=(0, (3, 2))))
    handles.append(Line2D([], [], label="timed", color=style.MUTED))
    handles += style.family_keys(in_order(table, "engine"))
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, frameon=False)


def _tick(value: float) -> str:
    return f"{value:.4g}×"
