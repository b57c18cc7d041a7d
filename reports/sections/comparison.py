"""Two runs -> what became of each speedup. Only ratios within a run are set against each other: machines may differ."""

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
    """Speedups of cells that both tables measured, a sheet a workload; None where they share none.

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
        f"Speedups over {BASELINE} on the same interpreter, of this run and of {name}. A change is their ratio, "
        "with the interval that theirs give it if they are independent. Seconds of two runs are never compared; where "
        f"{BASELINE} itself changed, so did every speedup beside it."
    )
    return Section("comparison", f"Against {name}", lead, sheets)


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
