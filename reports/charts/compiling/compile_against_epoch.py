"""Compile time against epoch time: what a faster epoch costs. This is the project's main chart."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from reports.charts.drawing import style
from reports.charts.drawing.labels import label_column, label_marks, write_along
from reports.measured.headline import PUBLISHED_WORKLOADS, claim, compiled, leader
from reports.measured.table import each, in_order, largest, racing, smallest
from reports.measured.trade_off import Least, front, least, traded
from reports.sections.glance import EPOCHS
from reports.sections.published import PUBLISHED
from results import units

ORDER = 1
SUBJECT = "headline"

_STRIP_SHARE = 0.3
"""Share of the chart's width for engines that compile nothing: a logarithmic axis has no zero."""
_FAR = 3.0
"""An engine's slowest mark, if slower than its fastest by this factor, is labelled too: colour alone is not enough."""
_NEAR, _FEW = 4.0, 4
"""More than `_FEW` marks within this factor of the leader, in both times, are a crowd."""
_INSET = (0.45, 0.64, 0.55, 0.36)
"""Left, bottom, width and height of the enlarged part, as shares of the chart."""
_DOTTED = (0, (1, 2))


def title(table: pd.DataFrame) -> str:
    """The headline, as the README and the page have it."""
    workload = next(iter(in_order(table, "workload")), None)
    found = claim(table, workload)
    return found.text if found else "No epoch was measured"


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    text = (
        "Further left is less compile time and lower is a faster epoch: no mark is below and left of the solid line, "
        "and along a dotted line the total for the number of epochs on its label is constant. A colour is a family of "
        "engines and a shape an interpreter, bars are 95 % intervals, and the frame enlarges the crowded part"
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

    def at(compile_seconds: float) -> float:
        return compile_seconds or nothing

    crowd = _crowd(rows)
    marks: list[tuple[float, float]] = []
    for row in each(rows.sort_values("epoch_seconds", ascending=False)):
        x, y = at(row.compile_seconds), row.epoch_seconds
        _mark(axes, table, row, x, y)
        marks.append((x, y))
    alone = rows.drop(crowd.index)
    labels = [(at(row.compile_seconds), row.epoch_seconds, str(row.engine)) for row in _named(alone)]
    for known in published:
        x, y = at(known.compile_seconds), known.epoch_seconds
        # In front of measured marks, which show through the hollow diamond.
        axes.plot(x, y, "D", markersize=7, markerfacecolor="none", markeredgecolor=style.TEXT, zorder=3)
        marks.append((x, y))
        labels.append((x, y, f"{known.name}, published"))
    axes.axvline(edge, color=style.MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    ours = racing(rows)
    lines = _interval_ends(rows) + (_front(axes, front(ours), edge) if len(ours) else [])
    _legend(axes, table, rows, published=bool(published))
    column = nothing * (edge / nothing) ** 0.25
    label_column(axes, [label for label in labels if label[0] == nothing], column)
    # A longer training has a lower line: label the first above and the last below.
    for rise, epochs in zip((5, -5), EPOCHS if len(ours) else (), strict=False):
        best = least(ours, epochs)
        lines += _equal_totals(axes, best, edge, edge if best.row.compile_seconds == 0 else column, rise)
    if len(crowd):
        _enlarge(axes, table, crowd)
        box = axes.transData.inverted().transform(
            axes.transAxes.transform([(_INSET[0], y / 20) for y in range(12, 21)])
        )
        lines += [(float(x), float(y)) for x, y in box]
    label_marks(axes, [label for label in labels if label[0] != nothing], marks, lines=lines, right_of=edge)


def _crowd(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows around the leader that are too close for labels; none if they are few or all there is."""
    best = leader(rows)
    if best is None or best.compile_seconds == 0:
        return rows.iloc[:0]
    near = rows
    for column in ("compile_seconds", "epoch_seconds"):
        near = near[(near[column] <= _NEAR * getattr(best, column)) & (near[column] * _NEAR >= getattr(best, column))]
    return near if _FEW < len(near) < len(rows) else rows.iloc[:0]


def _enlarge(axes: Axes, table: pd.DataFrame, crowd: pd.DataFrame) -> None:
    """Draw the crowd once more, larger, in the empty corner of slow compiles and slow epochs."""
    inset = axes.inset_axes(_INSET)
    inset.set_facecolor("none")
    for which, column in (("x", "compile_seconds"), ("y", "epoch_seconds")):
        low, high = float(crowd[column].min()), float(crowd[column].max())
        room = (high / low) ** 0.3 + 0.15
        style.log_seconds(inset, which, low=low / room, high=high * room)
    axes.indicate_inset_zoom(inset, edgecolor=style.MUTED, alpha=0.45)
    inset.tick_params(labelsize=8)
    for row in each(crowd):
        _mark(inset, table, row, row.compile_seconds, row.epoch_seconds)
    at = [(row.compile_seconds, row.epoch_seconds) for row in each(crowd)]
    bars = [
        (float(x), row.epoch_seconds)
        for row in each(crowd[crowd["compile_seconds_high"].notna()])
        for x in np.linspace(row.compile_seconds_low, row.compile_seconds_high, 8)
    ]
    label_marks(
        inset, [(row.compile_seconds, row.epoch_seconds, str(row.engine)) for row in _named(crowd)], at, lines=bars
    )


def _named(rows: pd.DataFrame) -> Iterator[Any]:
    """Yield the marks to label with the engine's name: its fastest, and its slowest if that is far away."""
    for engine in in_order(rows, "engine"):
        of_engine = rows[rows["engine"] == engine]
        fastest, slowest = smallest(of_engine, "epoch_seconds"), largest(of_engine, "epoch_seconds")
        yield fastest
        if slowest.epoch_seconds > _FAR * fastest.epoch_seconds:
            yield slowest


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


def _mark(axes: Axes, table: pd.DataFrame, row: Any, x: float, y: float) -> None:
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
        capsize=3,
    )
    interval = units.duration_interval(row.epoch_seconds_low, row.epoch_seconds_high)
    epoch = f"{'≈ ' if row.extrapolated else ''}{units.duration(row.epoch_seconds)} per epoch ({interval})"
    style.tip(mark, row, f"{compiled(row.compile_seconds)} to compile, {epoch}")


def _front(axes: Axes, rows: pd.DataFrame, edge: float) -> list[tuple[float, float]]:
    """Draw a staircase that starts at the strip's edge; return points along its steps."""
    top, right = axes.get_ylim()[1], axes.get_xlim()[1]
    corners = [(max(row.compile_seconds, edge), row.epoch_seconds) for row in each(rows)]
    if corners[0][0] > edge:
        corners.insert(0, (corners[0][0], top))
    corners.append((right, corners[-1][1]))
    xs, ys = zip(*corners, strict=True)
    axes.step(xs, ys, where="post", color=style.TEXT, linewidth=1.0, alpha=0.55, zorder=1.5)
    return [
        (float(x), y) for (start, y), (stop, _) in itertools.pairwise(corners) for x in np.geomspace(start, stop, 40)
    ]


def _equal_totals(axes: Axes, best: Least, edge: float, named: float, rise: int) -> list[tuple[float, float]]:
    """Draw the line of the least total, with its label starting at x = `named`; return points along both."""
    left, total = axes.get_xlim()[0], best.total_seconds
    # The line is horizontal on the strip, where nothing is compiled; then it falls ever more steeply towards the total.
    line = [(left, best.epoch_seconds(0.0)), (edge, best.epoch_seconds(0.0))]
    if total > edge:
        half = max(edge / total, 0.5)
        shares = [*np.geomspace(edge / total, half, 60), *(1 - np.geomspace(1 - half, 1e-9, 60))]
        line += [(float(share) * total, best.epoch_seconds(float(share) * total)) for share in shares if share < 1]
    else:
        line.append((edge, axes.get_ylim()[0]))
    axes.plot(*zip(*line, strict=True), color=style.TEXT, linewidth=1.1, linestyle=_DOTTED, zorder=1.5)
    text = f"{units.count(best.epochs, 'epoch')} in {units.duration(total)}"
    return line + write_along(axes, (named, best.epoch_seconds(0.0), text), rise)


def _interval_ends(rows: pd.DataFrame) -> list[tuple[float, float]]:
    found = rows[rows["compile_seconds_high"].notna()]
    return [
        (getattr(row, f"compile_seconds_{end}"), row.epoch_seconds) for row in each(found) for end in ("low", "high")
    ]


def _legend(axes: Axes, table: pd.DataFrame, rows: pd.DataFrame, *, published: bool) -> None:
    handles = [
        _key(interpreter, style.interpreter_marker(table, interpreter), face=style.MUTED, edge=style.TEXT)
        for interpreter in in_order(rows, "interpreter")
    ]
    if published:
        handles.append(_key("published, another machine", "D", face="none", edge=style.TEXT))
    handles.append(Line2D([], [], color=style.TEXT, linewidth=1.0, alpha=0.55, label="Pareto front"))
    handles.append(Line2D([], [], color=style.TEXT, linewidth=1.1, linestyle=_DOTTED, label="equal totals"))
    handles += style.family_keys(in_order(rows, "engine"))
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, frameon=False)


def _key(label: str, marker: str, *, face: str, edge: str) -> Line2D:
    return Line2D([], [], linestyle="none", label=label, marker=marker, markerfacecolor=face, markeredgecolor=edge)
