"""Table -> the results that a terminal prints: one sheet for each workload and interpreter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from zoomgrad.reports.measured.headline import by_coverage, status_text
from zoomgrad.reports.measured.outcome import MEASURED
from zoomgrad.reports.measured.table import each, in_order
from zoomgrad.reports.text.figures import Figure, Sheet, compile_time, time
from zoomgrad.results import units

INTERVAL = "95 % interval"
HEADINGS = ("engine", "compile", "time per step", INTERVAL, "over baseline")


def printed(table: pd.DataFrame, last: str | None) -> Iterator[Sheet]:
    """Yield a sheet for each workload and interpreter, in the run's order.

    last: the workload to end with, because the end of the output is what a terminal shows. Engines without a result
    are notes below a sheet, by status: on a bare machine they are most of the plan.
    """
    for workload in sorted(in_order(table, "workload"), key=lambda name: name == last):
        rows = table[table["workload"] == workload]
        # The best covered is the last, for the same reason.
        for interpreter in reversed(by_coverage(rows)):
            yield _sheet(f"{workload} on {interpreter}", list(each(rows[rows["interpreter"] == interpreter])))


def _sheet(title: str, cells: list[Any]) -> Sheet:
    found = [_row(cell) for cell in cells if cell.status == MEASURED]
    at = HEADINGS.index(INTERVAL)
    headings: tuple[str, ...] = HEADINGS
    if all(row[at].text == units.ABSENT for row in found):  # too few blocks
        headings = headings[:at] + headings[at + 1 :]
        found = [row[:at] + row[at + 1 :] for row in found]
    return Sheet(title, 1, headings, tuple(found), tuple(_without_result(cells)))


def _row(cell: Any) -> tuple[Figure, ...]:
    step = time(cell, "step_seconds")
    interval = step.below if cell.step_seconds_low == cell.step_seconds_low else units.ABSENT
    known = cell.speedup == cell.speedup
    return (
        Figure(str(cell.engine)),
        Figure(compile_time(cell.compile_seconds)),
        Figure(step.text),
        Figure(interval),
        Figure(units.ratio(cell.speedup) if known else ""),
    )


def _without_result(cells: Iterable[Any]) -> Iterator[str]:
    by_status: dict[str, list[str]] = {}
    for cell in cells:
        if cell.status != MEASURED:
            by_status.setdefault(status_text(str(cell.status)), []).append(str(cell.engine))
    for status, names in by_status.items():
        yield f"{status}: {', '.join(names)}"
