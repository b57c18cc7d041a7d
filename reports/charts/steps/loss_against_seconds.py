"""Loss against seconds, compile time included: how long a user waits for the loss to fall."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from reports.charts.drawing import style
from reports.charts.drawing.labels import POINTS, Label, settle, spread
from reports.measured.sequences import POINTS_A_MEAN, first_to_halve
from reports.measured.table import in_order
from results import units

ORDER = 3
SUBJECT = "losses"

_LEAN = 45.0
"""Slant of the names in degrees, so that they fit side by side."""
_LETTER = 0.6
"""Ratio of a letter's width to its height."""


def title(table: pd.DataFrame) -> str:
    """The engine that is first to halve the loss."""
    rows = _rows(table)
    if rows.empty:
        return "No loss was recorded"
    if rows["engine"].value_counts().max() < 2:
        return "No training was long enough to see its loss fall"
    first = first_to_halve(rows)
    if first is None:
        return "No engine halved the loss while it was timed"
    return f"{first.engine} on {first.interpreter} is the first to halve the loss, {units.duration(first.seconds)} in"


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    workload = f" of {table['workload'].iloc[0]}" if len(table) else ""
    return (
        f"The training loss{workload} against time, on a logarithmic axis: compile time, then steps, from medians. "
        "Further left is sooner. A curve starts when its engine has compiled, and ends with the training that was "
        f"timed. A mark is the mean of {POINTS_A_MEAN} or more recorded losses; a curve with fewer is a single mark. "
        "Engines that compute identical bits have the same loss at each step, so they share the losses that any of "
        "them recorded. An engine has one curve: on the reference CPython or, if it was not measured there, on its "
        "fastest interpreter."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches: room for the names above the curves."""
    return 8.4, 4.4 + _names_inches(table)


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of `reports.measured.sequences.losses`."""
    rows = _rows(table)
    if rows.empty:
        style.nothing_to_draw(axes, "No loss was recorded.")
        return
    style.log_seconds(axes, "x", low=float(rows["seconds"].min()) / 1.3, high=float(rows["seconds"].max()) * 1.3)
    low, high = min(float(rows["loss"].min()), 0.0), float(rows["loss"].max())
    span = high - low or 1.0
    axes.set_ylim(low - 0.03 * span, high + span * _names_inches(table) / 3.4)
    axes.set_yticks([loss for loss in MaxNLocator(7).tick_values(low, high) if low <= loss <= high])
    axes.grid(True, axis="y", color=style.MUTED, alpha=0.3, linewidth=0.6)
    axes.set_xlabel("time since the start: compile, then train")
    axes.set_ylabel("training loss")
    style.bare(axes, "left", "bottom")
    starts = []
    for engine in in_order(rows, "engine"):
        curve = rows[rows["engine"] == engine]
        first = curve.iloc[0]
        axes.plot(
            curve["seconds"],
            curve["loss"],
            linewidth=1.3,
            path_effects=style.EDGE,
            color=style.engine_colour(table, engine),
            marker=style.interpreter_marker(table, str(first["interpreter"])),
            markersize=4,
            markeredgecolor=style.TEXT,
            markeredgewidth=0.4,
        )
        starts.append((float(first["seconds"]), float(first["loss"]), engine))
    _legend(axes, table, rows)
    _names(axes, starts, high + 0.08 * span)


def _names(axes: Axes, starts: list[Label], height: float) -> None:
    """Write each curve's name slanted above its start, as near as its neighbours allow."""
    scale = settle(axes)
    starts = sorted(starts)
    gap = POINTS * 1.2 / math.sin(math.radians(_LEAN))
    frame = axes.get_window_extent()
    right = frame.x1 / scale - _inches(starts[-1][2]) * 72
    wished = [-float(axes.transData.transform(start[:2])[0]) / scale for start in starts]
    # `spread` takes falling heights; negated x positions of sorted starts fall too.
    places = spread(wished, gap, low=-max(right, -wished[-1]), high=-frame.x0 / scale)
    for (x, y, name), place, wish in zip(starts, places, wished, strict=True):
        _, mark = axes.transData.transform((x, y)) / scale
        _, foot = axes.transData.transform((x, height)) / scale
        axes.annotate(
            name,
            (x, y),
            xytext=(wish - place, foot - mark),
            textcoords="offset points",
            rotation=_LEAN,
            rotation_mode="anchor",
            ha="left",
            va="center",
            fontsize=POINTS,
        ).set_in_layout(False)
        axes.annotate(
            "",
            (x, y),
            xytext=(wish - place, foot - mark),
            textcoords="offset points",
            arrowprops={"arrowstyle": "-", "color": style.MUTED, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 3},
        ).set_in_layout(False)


def _inches(name: str) -> float:
    """Return the height of a slanted name, which is also its width."""
    return len(name) * POINTS * _LETTER * math.sin(math.radians(_LEAN)) / 72


def _names_inches(table: pd.DataFrame) -> float:
    return 0.35 + max((_inches(engine) for engine in in_order(table, "engine")), default=0.0)


def _rows(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["loss"].notna()]


def _legend(axes: Axes, table: pd.DataFrame, rows: pd.DataFrame) -> None:
    handles = [
        Line2D(
            [],
            [],
            label=interpreter,
            color=style.MUTED,
            marker=style.interpreter_marker(table, interpreter),
            markeredgecolor=style.TEXT,
        )
        for interpreter in in_order(rows, "interpreter")
    ]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=5, frameon=False)
