"""Tables as tiles, such as the matrix with engines as rows and interpreters as columns: shared by all heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.patches import Rectangle

from reports.charts.drawing import style
from reports.measured.table import in_order

Place = tuple[str, str]
"""An engine and an interpreter."""

_MAP = colormaps["cividis"]  # uniform in lightness, and the same to colour-blind readers (Nuñez and others, 2018)
_EDGE = 0.001
"""Keeps the ends of the scale apart if all figures are the same."""


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    return 2.4 + 1.35 * max(len(in_order(table, "interpreter")), 2), 0.7 + 0.46 * len(in_order(table, "engine"))


def draw_tiles(
    axes: Axes, table: pd.DataFrame, texts: Mapping[Place, tuple[str, str]], figures: Mapping[Place, float]
) -> None:
    """Draw a tile for each entry of `texts`: a line of text and a smaller one below it.

    figures: give a tile its colour, on a logarithmic scale with the smallest darkest. A tile without one is hatched.
    """
    engines, interpreters = in_order(table, "engine"), in_order(table, "interpreter")
    if not engines:
        style.nothing_to_draw(axes, "The plan is empty.")
        return
    low, high = min(figures.values(), default=1.0), max(figures.values(), default=2.0)
    norm = LogNorm(low, high * (1 + _EDGE))
    tiles = {
        (engines.index(cell[0]), interpreters.index(cell[1])): (
            (_MAP(norm(figures[cell])) if cell in figures else None),
            *lines,
        )
        for cell, lines in texts.items()
    }
    draw_grid(axes, engines, interpreters, tiles)


def draw_grid(
    axes: Axes,
    rows: Sequence[str],
    columns: Sequence[str],
    tiles: Mapping[tuple[int, int], tuple[tuple[float, ...] | None, str, str]],
) -> None:
    """Draw tiles by row and column: colour, text, and a smaller line below. A tile without a colour is hatched."""
    for (y, x), (colour, text, below) in tiles.items():
        _tile(axes, x, y, colour, text, below)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    style.bare(axes)


def _tile(axes: Axes, x: int, y: int, colour: tuple[float, ...] | None, text: str, below: str) -> None:
    corner, edge = (x - 0.47, y - 0.45), 0.94
    if colour is None:
        axes.add_patch(Rectangle(corner, edge, 0.9, fill=False, edgecolor=style.MUTED, hatch=style.HATCH, alpha=0.75))
        axes.text(x, y, text, ha="center", va="center", fontsize=9)
        return
    axes.add_patch(Rectangle(corner, edge, 0.9, facecolor=colour, edgecolor="none"))
    ink = style.ink(colour)
    axes.text(x, y - 0.17 * bool(below), text, ha="center", va="center", fontsize=9, color=ink)
    axes.text(x, y + 0.2, below, ha="center", va="center", fontsize=8, color=ink)
