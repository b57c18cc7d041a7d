"""Table -> the figures of each measured cell with their bounds, by column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from reports.exports import Material, NoExport
from reports.measured.table import each, measured
from results.stats.intervals import Interval

LOW, HIGH = "_low", "_high"


@dataclass(frozen=True)
class Figures:
    """By cell key, then by column. A missing bound is NaN."""

    cells: Mapping[str, Mapping[str, Interval]]
    left_out: int


def figures(material: Material) -> Figures:
    """Return all finite figures of the cells that have a result. Raises NoExport if no cell has one."""
    table = material.view.table
    rows = measured(table)
    if rows.empty:
        raise NoExport(f"{material.view.run.id} has no cell with a result", "`zoomgrad report` shows the reasons.")
    # A bound belongs to its figure. Counts and text are not figures.
    columns = [
        name for name in rows.columns if pd.api.types.is_float_dtype(rows[name]) and not name.endswith((LOW, HIGH))
    ]
    found = {
        f"{row.engine}/{row.interpreter}/{row.workload}": {
            name: Interval(value, getattr(row, name + LOW, math.nan), getattr(row, name + HIGH, math.nan))
            for name in columns
            if math.isfinite(value := float(getattr(row, name)))
        }
        for row in each(rows)
    }
    return Figures(found, len(table) - len(rows))
