"""Peak memory of training and of compiling, by engine: shows whether a machine is large enough."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes

from reports.charts.drawing import dots, style
from reports.measured.table import each, largest, measured, smallest
from results import units

ORDER = 9
SUBJECT = "headline"

COLUMNS = ("peak_bytes", "peak_compiler_bytes")

_TOUCHING = 0.03
"""Two marks closer than this share of the axis touch."""


def title(table: pd.DataFrame) -> str:
    """The range of peaks while training, and the peak of the largest compiler."""
    rows = _rows(table)
    training, compiling = (rows[rows[column].notna()] for column in COLUMNS)
    if rows.empty:
        return "No memory was measured"
    told = []
    if len(training):
        least, most = smallest(training, "peak_bytes"), largest(training, "peak_bytes")
        span = f"{units.size(most.peak_bytes)} ({most.engine} on {most.interpreter})"
        if least.peak_bytes < most.peak_bytes:
            span = f"{units.size(least.peak_bytes)} ({least.engine} on {least.interpreter}) to {span}"
        told.append(f"Training peaks at {span}")
    if len(compiling):
        most = largest(compiling, "peak_compiler_bytes")
        weight = f"{units.size(most.peak_compiler_bytes)} ({most.engine} on {most.interpreter})"
        told.append(f"the largest compiler at {weight}" if told else f"The largest compiler peaks at {weight}")
    return ", ".join(told)


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    return (
        "Further left is less memory, on a logarithmic scale. A filled mark is the peak resident set of the worker, "
        "which traces, loads and trains. A hollow mark is the peak of the largest compiler that it ran. That is at "
        "least what the worker had when it started the compiler, because Linux counts a process from the moment it "
        "forks, before it loads its program. A shape is an interpreter. An engine that does not promise identical "
        "bits has its promise below its name."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    return dots.size(_rows(table))


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of one workload."""
    rows = _rows(table)
    if rows.empty:
        style.nothing_to_draw(axes, "No memory was measured.")
        return
    peaks = rows[list(COLUMNS)]
    low, high = float(peaks.min().min()) / 2, float(peaks.max().max()) * 2
    style.log_axis(axes, "x", low=low, high=high, text=style.bytes_tick)
    height = dots.frame_rows(axes, rows)
    for row in each(rows):
        y = height(row)
        # The line must not cross the hollow mark; marks that touch need no line.
        if abs(math.log(row.peak_bytes / row.peak_compiler_bytes)) > _TOUCHING * math.log(high / low):
            line = {"arrowstyle": "-", "color": style.MUTED, "linewidth": 1.0, "shrinkA": 3.5, "shrinkB": 5}
            axes.annotate("", (row.peak_compiler_bytes, y), (row.peak_bytes, y), arrowprops=line)
        # The hollow mark is larger and in front, so that both are visible if the peaks are equal.
        dots.mark(axes, table, row, row.peak_bytes, y, hollow=False, points=6)
        dots.mark(axes, table, row, row.peak_compiler_bytes, y, hollow=True, points=9)
    dots.legend(axes, table, rows, filled="training", hollow="compiler")
    axes.set_xlabel("peak resident set")


def _rows(table: pd.DataFrame) -> pd.DataFrame:
    rows = measured(table)
    return rows[rows[list(COLUMNS)].notna().any(axis=1)]
