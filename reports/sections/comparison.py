"""Two runs -> the change in each speedup. Only ratios within a run are compared, because the machines may differ."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.measured.races import SPEEDUP, speedups
from reports.measured.table import KEYS, each, in_order
from reports.text.figures import Figure, Section, Sheet, ratio
from results import units
from results.record import BASELINE
from results.stats import intervals
from results.stats.intervals import Interval

_HERE, _THERE = "", "_there"


def comparison(table: pd.DataFrame, other: pd.DataFrame, name: str) -> Section | None:
    """Compare the speedups of cells that both tables measured, one sheet per workload; None if they share none.

    name: the other run's.
    """
    both = speedups(table).merge(speedups(other), on=list(KEYS), suffixes=(_HERE, _THERE))
    if both.empty:
        return None
    headings = ("engine", "interpreter", "speedup", f"in {name}", "change")
    sheets = tuple(
        Sheet(workload, 2, headings, tuple(_row(row) for row in each(both[both["workload"] == workload])))
        for workload in in_order(table, "workload")
        if (both["workload"] == workload).any()
    )
    lead = (
        f"Speedups over {BASELINE} on the same interpreter, in this run and in {name}. A change is the ratio of the "
        "two; its interval follows from theirs, assuming that they are independent. Seconds are never compared across "
        f"runs. If {BASELINE} itself changed, every speedup changed with it."
    )
    return Section("comparison", f"Compared with {name}", lead, sheets)


def _row(row: Any) -> tuple[Figure, ...]:
    here, there = (Interval(*(getattr(row, f"{name}{suffix}") for name in SPEEDUP)) for suffix in (_HERE, _THERE))
    change = intervals.change(here, there)
    direction = "faster" if change.low > 1 else "slower" if change.high < 1 else ""
    text = f"{units.ratio(change.value)} {direction}".strip()
    return (
        Figure(row.engine),
        Figure(row.interpreter),
        ratio(row, "speedup"),
        Figure(units.ratio(there.value), units.ratio_interval(there.low, there.high)),
        Figure(text, units.ratio_interval(change.low, change.high), "different" if direction == "slower" else ""),
    )
