"""Time of a step by engine, in the order of the ladder, on each interpreter."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes

from reports.charts.drawing import style
from reports.measured.findings import best, faster
from reports.measured.headline import entries
from reports.measured.table import each, in_order, measured
from results.record import BASELINE

ORDER = 4
SUBJECT = "headline"


def title(table: pd.DataFrame) -> str:
    """The best speedup."""
    winner = best(table)
    return f"No engine was measured beside {BASELINE} on one interpreter" if winner is None else faster(winner)


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    return (
        "A bar is the time of one step, on a logarithmic scale: shorter is faster. Each group is one interpreter, "
        f"with engines in the order of the ladder; × is the speedup over {BASELINE} on the same interpreter. "
        "The line at the end of a bar is its 95 % interval, if it has one."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    return 8.4, 1.0 + 0.27 * (len(table) + 1.4 * len(in_order(table, "interpreter")))


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of one workload."""
    results = measured(table)
    if table.empty:
        style.nothing_to_draw(axes, "The plan is empty.")
        return
    times = results["step_seconds"] if len(results) else pd.Series([1.0])
    low = 10.0 ** (math.floor(math.log10(times.min()) - 0.3))
    # Leave room on the right for the text at the end of the longest bar.
    high = times.max() * (times.max() / low) ** 0.3
    shown = entries(table)
    heights: dict[float, str] = {}
    height = 0.0
    for interpreter in in_order(table, "interpreter"):
        rows = table[table["interpreter"] == interpreter].sort_values("engine")
        axes.annotate(interpreter, (low, height), (7, 0), textcoords="offset points", va="center", weight="bold")
        for row in each(rows):
            height += 1
            engine = str(row.engine)
            heights[height] = engine
            entry = shown[engine, interpreter]
            end = low
            if row.status == "measured":
                end = row.step_seconds
                axes.barh(
                    height,
                    end - low,
                    left=low,
                    height=0.72,
                    color=style.engine_colour(table, engine),
                    edgecolor=style.TEXT,
                    linewidth=0.5,
                    xerr=style.error_bars(row, "step_seconds"),
                    error_kw={"capsize": 2, "elinewidth": 0.9},
                )
                end = max(end, row.step_seconds_high)  # past the interval's line; if it is NaN, max keeps `end`
            text = f"{entry.text}, {entry.speedup}" if entry.speedup else entry.text
            axes.annotate(text, (end, height), (7, 0), textcoords="offset points", va="center", fontsize=9)
        height += 1.4
    style.log_seconds(axes, "x", low=low, high=high)
    axes.set_ylim(height - 0.6, -0.7)
    axes.set_yticks(list(heights), list(heights.values()))
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("time of a step")
    style.bare(axes, "left", "bottom")
