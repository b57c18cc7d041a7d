"""Memory over time, with a panel for each interpreter and a line for each engine."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from reports.charts.drawing import style
from reports.measured.table import in_order, largest
from results import units

ORDER = 13
SUBJECT = "memory-over-time"

_PANEL_INCHES = 2.3
_COLUMNS = 6
"""Columns of the legend."""


def title(table: pd.DataFrame) -> str:
    """The highest peak."""
    if table.empty:
        return "No memory was sampled"
    peak = largest(table, "resident_bytes")
    return f"Memory is highest in {peak.engine} on {peak.interpreter}, with {units.size(float(peak.resident_bytes))}"


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    workload = f" on {table['workload'].iloc[0]}" if len(table) else ""
    return (
        f"Resident memory of the process while it trains{workload}. A sawtooth is the garbage collector: memory grows "
        "until it runs. A leak would raise the lowest points from left to right. A long straight line has no readings "
        "in it: on CPython, no other thread runs during a collection."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    return 8.4, 0.8 + _PANEL_INCHES * max(1, len(in_order(table, "interpreter")) if len(table) else 1)


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of `reports.profiling.memory_over_time.points`."""
    if table.empty:
        style.nothing_to_draw(axes, "No memory was sampled.")
        return
    interpreters = in_order(table, "interpreter")
    figure = axes.get_figure(root=True)
    spec = axes.get_subplotspec()
    assert figure is not None and spec is not None
    axes.set_axis_off()
    cells = spec.subgridspec(len(interpreters), 1)
    for index, interpreter in enumerate(interpreters):
        panel = figure.add_subplot(cells[index, 0])
        _panel(panel, table, table[table["interpreter"] == interpreter], interpreter)
        if index == len(interpreters) - 1:
            panel.set_xlabel("seconds of training")
    handles = [
        Line2D([], [], color=style.engine_colour(table, engine), linewidth=2, path_effects=style.EDGE, label=engine)
        for engine in in_order(table, "engine")
    ]
    figure.legend(handles=handles, loc="outside lower left", ncols=_COLUMNS, frameon=False, fontsize=8.5)


def _panel(panel: Axes, table: pd.DataFrame, rows: pd.DataFrame, interpreter: str) -> None:
    for engine in in_order(rows, "engine"):
        line = rows[rows["engine"] == engine]
        panel.plot(
            line["seconds"],
            line["resident_bytes"],
            color=style.engine_colour(table, engine),
            linewidth=1.3,
            path_effects=style.EDGE,
        )
    panel.set_title(interpreter, loc="left", fontsize=9.5, weight="bold")
    panel.set_ylim(0, float(rows["resident_bytes"].max()) * 1.08)
    panel.set_xlim(left=0)
    panel.yaxis.set_major_locator(MaxNLocator(5))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: style.bytes_tick(value) if value else "0"))
    panel.grid(True, axis="y", color=style.MUTED, alpha=0.3, linewidth=0.6)
    panel.set_axisbelow(True)
    style.bare(panel, "left", "bottom")
