"""Map of the ratio to the best peer, by width of the network and rows of a batch: where engines win, and where not."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.patches import Rectangle

from zoomgrad.reports.charts.drawing import style
from zoomgrad.reports.measured.table import each, largest, smallest
from zoomgrad.results import units

ORDER = 8
SUBJECT = "peers"

_MAP = colormaps["PuOr_r"]  # two hues that colour-blind readers distinguish, and pale in the middle
_LEAST_FACTOR = 1.5
"""The scale reaches at least this far to both sides of 1, so that noise is pale."""


def title(table: pd.DataFrame) -> str:
    """In how many tiles the engine wins, and the extremes."""
    if table.empty:
        return "No engine was measured alongside a peer on networks of several widths"
    ahead = int(((table["ratio"] < 1) & ~(table["ratio_high"] >= 1)).sum())
    best, worst = smallest(table, "ratio"), largest(table, "ratio")
    return (
        f"The best strict engine beats the best peer in {ahead} of {units.count(len(table), 'tile')}: "
        f"ratios from {best.ratio:.2f} ({_place(best)}) to {worst.ratio:.2f} ({_place(worst)})"
    )


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    shape = (
        "" if table.empty else f" of {table['inputs'].iloc[0]:.0f} inputs and {table['outputs'].iloc[0]:.0f} outputs"
    )
    return (
        f"Networks{shape} with one hidden layer: its width grows downwards, the rows of a batch to the right. A tile "
        "shows the time of a step of the fastest strict engine over that of the fastest peer, both in float64 on one "
        "thread, and the peer's name. Below 1, in violet, the engine is faster; above 1, in orange, the peer is."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    return 2.0 + 1.35 * max(table["batch"].nunique(), 3), 1.2 + 0.5 * max(table["width"].nunique(), 2)


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of `reports.measured.contests.grid`."""
    if table.empty:
        style.nothing_to_draw(axes, "No engine and peer were measured on networks of several widths.")
        return
    widths, batches = sorted(set(table["width"])), sorted(set(table["batch"]))
    factor = max(_LEAST_FACTOR, math.exp(max(abs(math.log(row.ratio)) for row in each(table))))
    norm = LogNorm(1 / factor, factor)
    for row in each(table):
        _tile(axes, batches.index(row.batch), widths.index(row.width), _MAP(norm(row.ratio)), row)
    axes.set_xlim(-0.5, len(batches) - 0.5)
    axes.set_ylim(len(widths) - 0.5, -0.5)
    axes.set_xticks(range(len(batches)), [f"{batch:,}" for batch in batches])
    axes.set_yticks(range(len(widths)), [f"{width:,.0f}" for width in widths])
    axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    style.bare(axes)
    axes.set_ylabel("hidden units")
    axes.set_xlabel("rows of a batch")
    axes.xaxis.set_label_position("top")


def _tile(axes: Axes, x: int, y: int, colour: tuple[float, ...], row: Any) -> None:
    axes.add_patch(Rectangle((x - 0.47, y - 0.45), 0.94, 0.9, facecolor=colour, edgecolor="none"))
    ink = style.ink(colour)
    axes.text(x, y - 0.17, f"{row.ratio:.2f}", ha="center", va="center", fontsize=9, color=ink)
    axes.text(x, y + 0.2, str(row.peer), ha="center", va="center", fontsize=8, color=ink)


def _place(row: Any) -> str:
    return f"{row.width:,.0f} units, batch {row.batch:,}"
