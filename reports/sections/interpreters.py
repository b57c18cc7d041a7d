"""View -> how the same engine differs between interpreters."""

from __future__ import annotations

import pandas as pd

from zoomgrad.reports.measured.headline import by_coverage
from zoomgrad.reports.measured.table import each, in_order, measured
from zoomgrad.reports.text.figures import Figure, Section, Sheet
from zoomgrad.reports.view import View
from zoomgrad.results import units
from zoomgrad.results.record import BASELINE


def interpreters(view: View) -> Section | None:
    """Times of a step on the workload with most engines on several interpreters; None if there is none."""
    rows = view.main_rows[view.main_rows["status"] == "measured"]
    several = rows[rows.groupby(["workload", "engine"], observed=True)["interpreter"].transform("nunique") > 1]
    if several.empty:
        return None
    counts = several["workload"].value_counts()
    workload = max(counts.index, key=lambda name: (counts[name], name == view.headline_workload))
    here = several[several["workload"] == workload]
    hosts = by_coverage(here)
    by_cell = {(row.engine, row.interpreter): row for row in each(here)}
    lines = tuple(
        (Figure(engine), *(_step(by_cell.get((engine, host))) for host in hosts)) for engine in in_order(here, "engine")
    )
    sheet = Sheet(f"A step of {workload}", 1, ("engine", *hosts), lines)
    return Section("interpreters", "How do interpreters differ?", _answer(here), (sheet,))


def _step(row: object) -> Figure:
    return Figure("") if row is None else Figure(units.duration(row.step_seconds))  # type: ignore[attr-defined]


def _answer(rows: pd.DataFrame) -> str:
    """Compare baseline between its fastest and slowest interpreter, and the engines that compile."""
    parts = []
    base = measured(rows[rows["engine"] == BASELINE]).sort_values("step_seconds")
    if len(base) > 1:
        fast, slow = base.iloc[0], base.iloc[-1]
        ratio = units.times(slow["step_seconds"] / fast["step_seconds"])
        parts.append(f"{BASELINE} is {ratio} as fast on {fast['interpreter']} as on {slow['interpreter']}")
    compiled = rows[rows["object_bytes"] > 0].groupby("engine", observed=True)["step_seconds"]
    spread = (compiled.max() / compiled.min()).dropna()
    if len(spread):
        parts.append(f"engines that run C differ by at most {100 * (spread.max() - 1):.0f} %")
    return "; ".join(parts) or "Times of the same engines on each interpreter"
