"""Total time against images trained: which engine to choose for a training of a given length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from zoomgrad.reports.charts.drawing import style
from zoomgrad.reports.charts.drawing.labels import BELOW, POINTS, RIGHT, label_marks
from zoomgrad.reports.measured.table import in_order, measured, racing
from zoomgrad.reports.sections.break_even import AT_ONCE, Cost, Winner, about, costs, noun, samples_an_epoch, winners

ORDER = 2
SUBJECT = "headline"

EPOCHS = 100
"""Length of the lines, in epochs."""

_NAMES_SHARE = 0.2
"""Share of the chart's width for the engines' names right of their lines."""


def title(table: pd.DataFrame) -> str:
    """The engines with the least total time, and from how many images on."""
    leads = _winners(table)
    if not leads:
        return "No total time was measured"
    first, *others = leads
    one, where = noun(_workload(table)), f"on {_interpreter(table)}"
    if not others:
        return f"{first.cost.engine} takes the least total time {where} from the first {one} on"
    changes = ", ".join(f"{later.cost.engine} from {about(later.images)}" for later in others)
    return f"Least total time {where}: {first.cost.engine}, then {changes} {one}s on"


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    one = noun(_workload(table))
    return (
        f"A line is compile time plus the time of every {one} trained, from medians, up to {EPOCHS} epochs: for any "
        "number, choose the engine with the lowest line, which is thick there. A dot marks where another engine takes "
        "over; engines that never lead are grey, and handwritten C is a reference line."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    return 8.4, 4.6


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of one workload, on one interpreter."""
    leads = _winners(table)
    if not leads:
        style.nothing_to_draw(axes, "No total time was measured.")
        return
    found, end = costs(table, _interpreter(table)), _end(table)
    _scales(axes, found, end, noun(_workload(table)))
    leading = {winner.cost.engine for winner in leads}
    for cost in found:
        if cost.engine not in leading:
            _line(axes, cost, AT_ONCE, end, color=style.MUTED, linewidth=0.8, alpha=0.7)
    for winner, until in zip(leads, [*(float(later.images) for later in leads[1:]), end], strict=True):
        colour = style.engine_colour(winner.cost.engine)
        _line(axes, winner.cost, AT_ONCE, end, color=colour, linewidth=1.3, path_effects=style.EDGE)
        _line(axes, winner.cost, winner.images, until, color=colour, linewidth=4.5)
    _epoch(axes, end / EPOCHS)
    dots = [(float(later.images), later.cost.total_seconds(later.images), about(later.images)) for later in leads[1:]]
    axes.plot([x for x, _, _ in dots], [y for _, y, _ in dots], "o", color=style.TEXT, markersize=5.5, zorder=4)
    by_name = sorted(found, key=lambda cost: (cost.engine not in leading, cost.total_seconds(end)))
    label_marks(axes, dots, BELOW)
    label_marks(axes, [(end, cost.total_seconds(end), cost.engine) for cost in by_name], RIGHT)


def _workload(table: pd.DataFrame) -> str:
    return next(iter(in_order(table, "workload")), "")


def _interpreter(table: pd.DataFrame) -> str:
    """Return the reference CPython if it has results, else the interpreter with the most."""
    rows = measured(table)
    at_home = rows[rows["on_reference"].astype(bool)]
    names = in_order(rows if at_home.empty else at_home, "interpreter")
    return max(names, key=lambda name: len(costs(table, name)), default="")


def _end(table: pd.DataFrame) -> float:
    return EPOCHS * samples_an_epoch(table)


def _winners(table: pd.DataFrame) -> list[Winner]:
    """Return the winners within the chart; none if no epoch was measured."""
    end = _end(table)
    return [winner for winner in winners(costs(racing(table), _interpreter(table))) if winner.images < end]


def _spaced(start: float, stop: float) -> list[float]:
    return [float(images) for images in np.geomspace(start, stop, 20)]


def _line(axes: Axes, cost: Cost, start: float, stop: float, **options: Any) -> None:
    """Draw the line through many points, because a straight line bends on logarithmic axes."""
    images = _spaced(start, stop)
    axes.plot(images, [cost.total_seconds(count) for count in images], **options)


def _scales(axes: Axes, found: list[Cost], end: float, one: str) -> None:
    beyond = end * end ** (_NAMES_SHARE / (1 - _NAMES_SHARE))
    style.log_axis(axes, "x", low=AT_ONCE / 1.2, high=beyond, text=lambda images: f"{images:,.0f}")
    axes.set_xticks([images for images in axes.get_xticks() if images <= end])
    low = min(cost.total_seconds(AT_ONCE) for cost in found)
    style.log_seconds(axes, "y", low=low / 2, high=2 * max(cost.total_seconds(end) for cost in found))
    axes.set_xlabel(f"{one}s trained")
    axes.set_ylabel("total time: compile, then train")
    style.bare(axes, "left", "bottom")


def _epoch(axes: Axes, images: float) -> None:
    axes.axvline(images, color=style.MUTED, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0.5)
    axes.annotate(
        "1 epoch",
        (images, 1.0),
        (-4, -2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=POINTS,
        color=style.MUTED,
    )
