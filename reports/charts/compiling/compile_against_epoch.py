"""Compile time against epoch time: what a faster epoch costs. This is the project's main chart."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from zoomgrad.reports.charts.drawing import style
from zoomgrad.reports.charts.drawing.labels import Label, label_marks
from zoomgrad.reports.measured.headline import PUBLISHED_WORKLOADS, claim, compiled
from zoomgrad.reports.measured.table import each, in_order, racing
from zoomgrad.reports.measured.trade_off import front, traded
from zoomgrad.reports.sections.published import PUBLISHED
from zoomgrad.results import units

ORDER = 1
SUBJECT = "headline"

_STRIP_SHARE = 0.3
"""Share of the chart's width for engines that compile nothing: a logarithmic axis has no zero."""


def title(table: pd.DataFrame) -> str:
    """The headline, as the README and the page have it."""
    workload = next(iter(in_order(table, "workload")), None)
    found = claim(table, workload)
    return found.text if found else "No epoch was measured"


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    text = (
        "Further left is less compile time and lower is a faster epoch: no mark is below and left of the solid line. A "
        "colour is a family of engines and a shape an interpreter, bars are 95 % intervals, and names that would "
        "cover others are left out"
    )
    return f"{text}; hollow diamonds are figures published from another machine." if _published(table) else f"{text}."


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    return 8.4, 7.0


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of one workload."""
    rows = traded(table)
    if rows.empty:
        style.nothing_to_draw(axes, "No epoch was measured.")
        return
    published = PUBLISHED if _published(table) else ()
    nothing, edge = _scales(axes, rows, [(row.compile_seconds, row.epoch_seconds) for row in published])

    ours = racing(rows)
    leading = front(ours)
    labels: dict[str, Label] = {}
    for row in each(leading):
        labels.setdefault(row.engine, _mark(axes, table, row, nothing))
    for known in published:
        x, y = known.compile_seconds or nothing, known.epoch_seconds
        # In front of measured marks, which show through the hollow diamond.
        axes.plot(x, y, "D", markersize=7, markerfacecolor="none", markeredgecolor=style.TEXT, zorder=3)
        labels[known.name] = (x, y, f"{known.name}, published")
    for row in each(rows.drop(leading.index).sort_values("epoch_seconds")):
        labels.setdefault(row.engine, _mark(axes, table, row, nothing))
    axes.axvline(edge, color=style.MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    if len(ours):
        _front(axes, leading, edge)
    _legend(axes, table, rows, published=bool(published))
    label_marks(axes, list(labels.values()))


def _published(table: pd.DataFrame) -> bool:
    return any(name in PUBLISHED_WORKLOADS for name in in_order(table, "workload"))


def _scales(axes: Axes, rows: pd.DataFrame, published: list[tuple[float, float]]) -> tuple[float, float]:
    """Set both axes; return the x of engines that compile nothing, and the x at which their strip ends."""
    compiles = [*rows["compile_seconds"], *(point[0] for point in published)]
    epochs = [*rows["epoch_seconds"], *(point[1] for point in published)]
    positive = [seconds for seconds in compiles if seconds > 0] or [1.0]
    edge = 10 ** (math.floor(math.log10(min(positive)) * 2) / 2 - 0.2)
    right = max(positive) * 10**0.6
    strip = (right / edge) ** (_STRIP_SHARE / (1 - _STRIP_SHARE))
    style.log_seconds(axes, "x", low=edge / strip, high=right)
    style.log_seconds(axes, "y", low=min(epochs) / 6, high=max(epochs) * 3)
    nothing = edge / strip**0.85
    shown = [seconds for seconds in axes.get_xticks() if seconds > edge]
    axes.set_xticks([nothing, *shown], ["nothing to\ncompile", *(style.tick(seconds) for seconds in shown)])
    axes.set_xlabel("compile time, all phases")
    axes.set_ylabel("time of an epoch")
    style.bare(axes, "left", "bottom")
    return nothing, edge


def _mark(axes: Axes, table: pd.DataFrame, row: Any, nothing: float) -> Label:
    """Draw a mark; return its label."""
    x, y = row.compile_seconds or nothing, row.epoch_seconds
    mark, *_ = axes.errorbar(
        x,
        y,
        xerr=style.error_bars(row, "compile_seconds"),
        yerr=style.error_bars(row, "epoch_seconds"),
        fmt=style.interpreter_marker(table, row.interpreter),
        color=style.engine_colour(row.engine),
        markeredgecolor=style.TEXT,
        markeredgewidth=0.5,
        markersize=7,
    )
    interval = units.duration_interval(row.epoch_seconds_low, row.epoch_seconds_high)
    epoch = f"{'≈ ' if row.extrapolated else ''}{units.duration(row.epoch_seconds)} per epoch ({interval})"
    style.tip(mark, row, f"{compiled(row.compile_seconds)} to compile, {epoch}")
    return x, y, str(row.engine)


def _front(axes: Axes, rows: pd.DataFrame, edge: float) -> None:
    """Draw a staircase that starts at the strip's edge."""
    corners = [(max(row.compile_seconds, edge), row.epoch_seconds) for row in each(rows)]
    if corners[0][0] > edge:
        corners.insert(0, (corners[0][0], axes.get_ylim()[1]))
    corners.append((axes.get_xlim()[1], corners[-1][1]))
    axes.step(*zip(*corners, strict=True), where="post", color=style.TEXT, linewidth=1.0, alpha=0.55, zorder=1.5)


def _legend(axes: Axes, table: pd.DataFrame, rows: pd.DataFrame, *, published: bool) -> None:
    handles = [
        _key(interpreter, style.interpreter_marker(table, interpreter), face=style.MUTED, edge=style.TEXT)
        for interpreter in in_order(rows, "interpreter")
    ]
    if published:
        handles.append(_key("published, another machine", "D", face="none", edge=style.TEXT))
    handles.append(Line2D([], [], color=style.TEXT, linewidth=1.0, alpha=0.55, label="Pareto front"))
    handles += style.family_keys(in_order(rows, "engine"))
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, frameon=False)


def _key(label: str, marker: str, *, face: str, edge: str) -> Line2D:
    return Line2D([], [], linestyle="none", label=label, marker=marker, markerfacecolor=face, markeredgecolor=edge)
