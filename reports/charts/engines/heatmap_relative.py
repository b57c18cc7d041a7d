"""Heat map of speedups over baseline: where an engine gains most, and what its interpreter adds."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from reports.charts.drawing.tiles import draw_tiles
from reports.charts.drawing.tiles import size as size
from reports.measured.headline import entries
from reports.measured.outcome import MEASURED
from reports.measured.table import each, largest, measured, smallest
from results import units
from results.record import BASELINE

ORDER = 7
SUBJECT = "headline"


def title(table: pd.DataFrame) -> str:
    """The range of speedups, each on its own interpreter."""
    rows = _rows(table)
    rows = rows[rows["engine"] != BASELINE]
    if rows.empty:
        return f"No engine was measured beside {BASELINE} on one interpreter"
    least, most = smallest(rows, "speedup"), largest(rows, "speedup")
    if len(rows) == 1:
        return f"{most.engine} on {most.interpreter}: {units.times(most.speedup)} {BASELINE}'s speed there"
    return (
        f"From {units.times(least.speedup)} the speed of {BASELINE} ({least.engine} on {least.interpreter}) "
        f"to {units.times(most.speedup)} ({most.engine} on {most.interpreter})"
    )


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    return (
        f"The first line of a cell is its speedup over {BASELINE} on the same interpreter; darker is larger, on a "
        "logarithmic scale. The second line, on other interpreters than the reference CPython, is the speedup over "
        f"{BASELINE} on the reference: the gain of engine and interpreter together. Hatched cells have no speedup: "
        f"either no result, for the reason shown, or no {BASELINE} to compare with."
    )


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of one workload."""
    rows = {(str(row.engine), str(row.interpreter)): row for row in each(_rows(table))}
    texts = {
        cell: _texts(rows[cell]) if cell in rows else (f"no {BASELINE}" if entry.status == MEASURED else entry.text, "")
        for cell, entry in entries(table).items()
    }
    # Tiles draw the smallest figure darkest.
    draw_tiles(axes, table, texts, {cell: 1 / float(row.speedup) for cell, row in rows.items()})


def _rows(table: pd.DataFrame) -> pd.DataFrame:
    rows = measured(table)
    return rows[rows["speedup"].notna()]


def _texts(row: Any) -> tuple[str, str]:
    elsewhere = not row.on_reference and row.speedup_reference == row.speedup_reference
    return units.ratio(row.speedup), f"{units.ratio(row.speedup_reference)} reference" if elsewhere else ""
