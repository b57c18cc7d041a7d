"""Table -> each engine's speedup over all workloads: their geometric mean, with its interval.

A mean compares engines only over the same workloads, so an engine that lacks one of them has none.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from reports.measured.table import each, in_order, measured
from reports.text.figures import Figure, Section, Sheet
from results import units
from results.record import BASELINE
from results.stats.intervals import Interval, geometric_mean

_LEAD = (
    "Geometric means of the speedups over baseline on the same interpreter, over all workloads measured there: what is "
    "twice as fast on one and half as fast on another gains nothing. They speak of these workloads and of no others."
)


def means(table: pd.DataFrame) -> Section | None:
    """A sheet an interpreter on which several workloads were measured; None where there is none."""
    rows = measured(table)
    rows = rows[(rows["engine"] != BASELINE) & rows["speedup"].notna()]
    sheets = tuple(sheet for name in in_order(rows, "interpreter") for sheet in _sheet(name, rows))
    return Section("means", "Speedup over all workloads", _LEAD, sheets) if sheets else None


def _sheet(interpreter: str, rows: pd.DataFrame) -> Iterator[Sheet]:
    rows = rows[rows["interpreter"] == interpreter]
    workloads = in_order(rows, "workload")
    by_engine = {engine: list(each(rows[rows["engine"] == engine])) for engine in in_order(rows, "engine")}
    everywhere = {engine: found for engine, found in by_engine.items() if len(found) == len(workloads)}
    if len(workloads) < 2 or not everywhere:
        return
    partial = [engine for engine in by_engine if engine not in everywhere]
    headings = ("engine", "geometric mean", "least", "most")
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
    note = f"Not measured on all of them: {', '.join(partial)}." if partial else ""
    title = f"{interpreter}, over {', '.join(workloads)}"
    yield Sheet(title, 1, headings, tuple(lines), tuple(filter(None, [note])))
