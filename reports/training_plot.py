"""Curves of trainings -> a picture for `zoomgrad train --plot`, in the style of the report's charts."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from reports.charts.drawing import style, svg
from results.stats.curves import Curve, logarithmic, median

_MARKED = 12
"""A curve of at most this many points shows them as marks."""
_CHARACTERS, _LINES = 120, 6
"""Longest line of the description, as wide as the picture if all are digits; and most lines."""
# Thin lines must be visible on white and on black.
_ONE, _MEDIAN = style.shade(style.series_colour(0), 0.2), style.series_colour(1)


class Trainings(NamedTuple):
    """What is drawn: curves over epochs, one for each training."""

    title: str
    description: str
    losses: Sequence[Curve]
    accuracies: Sequence[Curve]
    """Shares of 1."""
    evaluated_on: str
    made_by: str
    """The program, which the file names, so that it knows its own files."""


def as_svg(trainings: Trainings) -> str:
    """The picture in the reader's colours, light or dark."""
    with matplotlib.rc_context({**svg.STYLE, "svg.hashsalt": "training"}):
        text = svg.alone(svg.written(_figure(trainings), "training", trainings.title), "training")
    return f"<!-- {trainings.made_by} -->\n{text}\n"


def _figure(trainings: Trainings) -> Figure:
    described = textwrap.wrap(trainings.description, _CHARACTERS, max_lines=_LINES, placeholder=" …") or [""]
    height = 4.2 + 0.18 * (len(described) - 1)
    figure = Figure(figsize=(9.6, height), layout="constrained")
    losses, accuracies = figure.subplots(1, 2)
    # The title leaves the lines below it to the description.
    title = trainings.title + "\n" * len(described)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11.5, weight="bold", color=style.TEXT)
    text, below_title = "\n".join(described), 1 - 0.315 / height
    figure.text(0.01, below_title, text, ha="left", va="top", fontsize=8.5, color=style.MUTED)
    values = [y for curve in trainings.losses for _, y in curve]
    by_logarithm = logarithmic(values)
    _panel(losses, f"training loss{', logarithmic' * by_logarithm}", trainings.losses)
    if by_logarithm:
        low, high = max(min(values) / 1.2, sys.float_info.min), min(max(values) * 1.2, sys.float_info.max)
        style.log_axis(losses, "y", low=low, high=high, text="{:g}".format)
    _panel(accuracies, f"accuracy on {trainings.evaluated_on}", trainings.accuracies)
    accuracies.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    accuracies.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    lowest = min((y for curve in trainings.accuracies for _, y in curve), default=0.0)
    accuracies.set_ylim(min(lowest, 0.9) - 0.02, 1.02)
    if len(trainings.losses) > 1:
        figure.legend(*losses.get_legend_handles_labels(), loc="outside lower left", ncols=2, frameon=False)
    return figure


def _panel(axes: Axes, title: str, curves: Sequence[Curve]) -> None:
    """A line for each training, and their median if there are several."""
    several = len(curves) > 1
    for number, curve in enumerate(curves):
        axes.plot(
            *zip(*curve, strict=True),
            color=_ONE,
            linewidth=0.8 if several else 1.6,
            alpha=max(0.6, 1.0 / len(curves) ** 0.5),
            marker="o" if len(curve) <= _MARKED else None,
            markersize=2.5 if several else 4,
            label=None if number else f"{len(curves)} trainings, each from its own seed",
        )
    if several:
        label = "median; a training that stopped keeps its last value"
        middle = median(curves)
        axes.plot(*zip(*middle, strict=True), color=_MEDIAN, linewidth=2.2, path_effects=style.EDGE, label=label)
    axes.set_title(title, loc="left", fontsize=9.5)
    axes.set_xlabel("epochs")
    axes.set_xlim(0.0, max(curve[-1][0] for curve in curves) * 1.01)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.grid(True, axis="y", color=style.MUTED, alpha=0.3, linewidth=0.6)
    axes.set_axisbelow(True)
    style.bare(axes, "left", "bottom")
