"""Run sequences: whether the values of a process had settled when they began to count."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from reports.charts.drawing import style
from reports.charts.drawing.labels import label_marks
from reports.measured.sequences import settling
from reports.measured.table import each, in_order, largest
from results import units

ORDER = 10
SUBJECT = "sequences"

_NOTABLE = 1.1
"""A value farther than this factor from the cell's time of a step is worth a remark."""
_WIDE = 3.0
"""From this factor between the smallest and the largest value on, the axis is logarithmic."""
_RING: dict[str, Any] = {
    "linestyle": "none",
    "marker": "o",
    "markersize": 11,
    "markerfacecolor": "none",
    "markeredgecolor": style.TEXT,
}


def title(table: pd.DataFrame) -> str:
    """The cell that starts slowest."""
    if table.empty:
        return "No sequence of values was recorded"
    slowest = largest(table[table["number"] == 1], "relative")
    if slowest.relative < _NOTABLE:
        span = units.ratio_interval(float(table["relative"].min()), float(table["relative"].max()))
        return f"No cell starts slowly: values are {span} the cell's time of a step"
    where = f"{slowest.engine} on {slowest.interpreter}"
    return f"{where} starts slowest: its first value takes {units.times(slowest.relative)} its time of a step"


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    workload = f" of {table['workload'].iloc[0]}" if len(table) else ""
    return (
        f"The values{workload} that a process took, one after another, over the cell's time of a step; medians over "
        "processes. Dashed: warm-up, which is left out of that time. A solid part that still falls may have been timed "
        "too soon. Even value 1 is not a process's first step: those that count how many steps make a value come "
        "before it. A colour is an engine, a shape an interpreter; an engine's name stands where it is farthest from "
        f"1, and cells that stay within a factor of {_NOTABLE} are grey. Just-in-time interpreters, and one CPython to "
        "compare them with. A ring stands where every process of a cell has settled, by changepoints: see "
        f"docs/statistics.md. {settling(table)}"
    ).rstrip()


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    return 8.4, 4.8


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of `reports.measured.sequences.values`."""
    if table.empty:
        style.nothing_to_draw(axes, "No sequence of values was recorded.")
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
            _line(axes, table, curve, notable=_notable(row))
            if _notable(row) and (engine not in farthest or _distance(row) > _distance(farthest[engine])):
                farthest[engine] = row
    _legend(axes, table)
    names = [(float(row.number), float(row.relative), engine) for engine, row in farthest.items()]
    label_marks(axes, names, [(float(row.number), float(row.relative)) for row in each(table)])


def _distance(row: Any) -> float:
    """From the cell's time of a step, either way."""
    return abs(math.log(row.relative))


def _notable(row: Any) -> bool:
    return _distance(row) > math.log(_NOTABLE)


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


def _line(axes: Axes, table: pd.DataFrame, curve: pd.DataFrame, *, notable: bool) -> None:
    first = next(each(curve))
    options: dict[str, Any] = {
        "color": style.engine_colour(table, first.engine) if notable else style.MUTED,
        "marker": style.interpreter_marker(table, first.interpreter),
        "markersize": 5,
        "markeredgecolor": style.TEXT,
        "markeredgewidth": 0.4,
        "linewidth": 1.3,
        **({"path_effects": style.EDGE, "zorder": 2.5} if notable else {"alpha": 0.6}),
    }
    warming = int(curve["warm_up"].sum())
    # Up to the first value that counts, so that the line has no gap.
    parts = ((curve.iloc[: warming + 1], (0, (3, 2))), (curve.iloc[warming:], "-")) if warming else ((curve, "-"),)
    for part, linestyle in parts:
        axes.plot(part["number"], part["relative"], linestyle=linestyle, **options)
    settled = curve[curve["number"] == curve["steady_from"]]
    axes.plot(settled["number"], settled["relative"], **_RING, zorder=3)


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
    if table["steady_from"].notna().any():
        handles.append(Line2D([], [], label="steady from here", **_RING))
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, frameon=False)


def _tick(value: float) -> str:
    return f"{value:.4g}×"
