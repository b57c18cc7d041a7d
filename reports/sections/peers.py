"""View -> the fastest strict engine beside other libraries that train the same network on the same bytes."""

from __future__ import annotations

from typing import Any

from zoomgrad.reports.measured.table import each, measured, ranked_rows, smallest
from zoomgrad.reports.text.figures import Figure, Section, Sheet, compile_time, time
from zoomgrad.reports.view import View
from zoomgrad.results import units


def peers(view: View) -> Section | None:
    """One row for each workload and peer, fastest first, over the fastest strict engine; None without peers."""
    rows = measured(view.table)
    lines: list[tuple[Figure, ...]] = []
    answers: list[str] = []
    for workload in view.workloads(rows):
        here = rows[rows["workload"] == workload]
        libraries, engines = here[here["peer"] != ""].sort_values("step_seconds"), ranked_rows(here)
        engines = engines[engines["engine"].astype(str) != "baseline"]
        if libraries.empty or engines.empty:
            continue
        best = smallest(engines, "step_seconds")
        lines += [_line(workload, row, best) for row in each(libraries)]
        if not answers:
            named = (f"{row.engine} {units.ratio(row.step_seconds / best.step_seconds)}" for row in each(libraries))
            answers.append(f"On {workload}, over {best.engine}: {', '.join(named)} as long")
    if not lines:
        return None
    headings = ("workload", "library", "a step", "over", "ratio", "compile", "memory", "error")
    note = (
        "All compute in float64 on one thread from the same start. A ratio is a library's time of a step over that "
        "of the fastest engine with identical bits: above 1, the engine is faster."
    )
    return Section(
        "peers", "Against other libraries?", answers[0], (Sheet("", 2, headings, tuple(lines)),), (), (note,)
    )


def _line(workload: str, row: Any, best: Any) -> tuple[Figure, ...]:
    return (
        Figure(workload),
        Figure(str(row.engine)),
        time(row, "step_seconds"),
        Figure(str(best.engine)),
        Figure(units.ratio(row.step_seconds / best.step_seconds)),
        Figure(compile_time(row.compile_seconds)),
        Figure(units.size(row.peak_bytes)),
        Figure(units.error(row.worst_error)),
    )
