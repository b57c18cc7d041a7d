"""The matrix at a glance: every engine on every interpreter, and every hole with its name."""

from __future__ import annotations

import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.patches import Rectangle

from reports.charts import style
from reports.headline import entries
from reports.table import each, in_order, largest, measured, smallest
from results import units

ORDER = 6
SUBJECT = "headline"

_MAP = colormaps["cividis"]  # even in lightness, and the same to colour-blind eyes (Nuñez and others, 2018)


def title(table: pd.DataFrame) -> str:
    """The span from the slowest cell to the fastest."""
    rows = measured(table)
    if rows.empty:
        return "No cell was measured"
    fastest, slowest = smallest(rows, "step_seconds"), largest(rows, "step_seconds")
    return (
        f"From {units.duration(slowest.step_seconds)} a step ({slowest.engine} on {slowest.interpreter}) "
        f"to {units.duration(fastest.step_seconds)} ({fastest.engine} on {fastest.interpreter})"
    )


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    return (
        "Darker is faster, on a logarithmic scale. A cell says the time of a step and the speedup over baseline on the "
        "same interpreter. Hatched cells have no result, for the reason they name."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    return 2.4 + 1.35 * max(len(in_order(table, "interpreter")), 2), 0.7 + 0.46 * len(in_order(table, "engine"))


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of one workload."""
    engines, interpreters = in_order(table, "engine"), in_order(table, "interpreter")
    if not engines:
        style.nothing_to_draw(axes, "The plan is empty.")
        return
    times = {(row.engine, row.interpreter): row.step_seconds for row in each(measured(table))}
    norm = LogNorm(min(times.values(), default=1.0), max([value * 1.001 for value in times.values()], default=2.0))
    for (engine, interpreter), entry in entries(table).items():
        x, y = interpreters.index(interpreter), engines.index(engine)
        seconds = times.get((engine, interpreter))
        colour = None if seconds is None else _MAP(norm(seconds))
        _tile(axes, x, y, colour, entry.text, entry.speedup)
    axes.set_xlim(-0.5, len(interpreters) - 0.5)
    axes.set_ylim(len(engines) - 0.5, -0.5)
    axes.set_xticks(range(len(interpreters)), interpreters)
    axes.set_yticks(range(len(engines)), engines)
    axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    style.bare(axes)


def _tile(axes: Axes, x: int, y: int, colour: tuple[float, ...] | None, text: str, speedup: str) -> None:
    corner, edge = (x - 0.47, y - 0.45), 0.94
    if colour is None:
        axes.add_patch(Rectangle(corner, edge, 0.9, fill=False, edgecolor=style.MUTED, hatch=style.HATCH, alpha=0.75))
        axes.text(x, y, text, ha="center", va="center", fontsize=9)
        return
    axes.add_patch(Rectangle(corner, edge, 0.9, facecolor=colour, edgecolor="none"))
    ink = style.ink(colour)
    axes.text(x, y - 0.17 * bool(speedup), text, ha="center", va="center", fontsize=9, color=ink)
    axes.text(x, y + 0.2, speedup, ha="center", va="center", fontsize=8, color=ink)
