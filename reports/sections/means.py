"""Table -> the geometric mean of each engine's speedups over all workloads, with its interval.

Means are comparable only over the same workloads, so an engine that lacks a workload has no mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from reports.measured.table import each, in_order, measured
from reports.text.figures import Figure, Section, Sheet
from results import units
from results.record import BASELINE
from results.stats.intervals import Interval, geometric_mean

_LEAD = (
    "Geometric means of the speedups over baseline on the same interpreter, over all workloads measured there: an "
    "engine that is twice as fast on one workload and half as fast on another gains nothing. The means hold for these "
    "workloads only."
)


def means(table: pd.DataFrame) -> Section | None:
    """One sheet per interpreter that measured several workloads; None if no interpreter did."""
    rows = measured(table)
    rows = rows[(rows["engine"] != BASELINE) & rows["speedup"].notna()]
    sheets = tuple(sheet for name in in_order(rows, "interpreter") for sheet in _sheet(name, rows))
    return Section("means", "Speedup over all workloads", _LEAD, sheets) if sheets else None


def _sheet(interpreter: str, rows: pd.DataFrame) -> Iterator[Sheet]:
    rows = rows[rows["interpreter"] == interpreter]
    workloads = in_order(rows, "workload")
    by_engine: dict[str, list[Any]] = {engine: [] for engine in in_order(rows, "engine")}
    for row in each(rows):
        by_engine[row.engine].append(row)
    everywhere = {engine: found for engine, found in by_engine.items() if len(found) == len(workloads)}
    if len(workloads) < 2 or not everywhere:
        return
    partial = [engine for engine in by_engine if engine not in everywhere]
    headings = ("engine", "geometric mean", "lowest", "highest")
    lines = []
    for engine, found in everywhere.items():
        mean = geometric_mean([Interval(row.speedup, row.speedup_low, row.speedup_high) for row in found])
        least, *_, most = sorted(found, key=lambda row: float(row.speedup))
        lines.append(
            (
                Figure(engine),
                Figure(units.ratio(mean.value), units.ratio_interval(mean.low, mean.high).replace(units.ABSENT, "")),
                Figure(units.ratio(least.speedup), str(least.workload)),
                Figure(units.ratio(most.speedup), str(most.workload)),
            )
        )
    note = f"Not measured on every workload: {', '.join(partial)}." if partial else ""
    title = f"{interpreter}, over {', '.join(workloads)}"
    yield Sheet(title, 1, headings, tuple(lines), tuple(filter(None, [note])))
