"""Tables on a terminal, or lists of objects under `--json`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group

from zoomgrad.harness.cli.console import out, say_json
from zoomgrad.harness.machine.interpreters import remedy
from zoomgrad.reports.pages.terminal import table

if TYPE_CHECKING:  # importing these would more than double the start-up time of `list`
    from zoomgrad.harness.plan.planning import Plan
    from zoomgrad.results.record import Cell


@dataclass(frozen=True)
class Part:
    """A table, or under `--json` a list of objects: its title, the keys, and the rows."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str | int]]


def show(parts: Iterable[Part], *, as_json: bool) -> None:
    """Print the parts as tables, without empty ones, or as one object with a list for each."""
    if as_json:
        say_json({part.title: [dict(zip(part.columns, row, strict=True)) for row in part.rows] for part in parts})
        return
    for part in parts:
        rows = [[one if isinstance(one, str) else f"{one:,}" for one in row] for row in part.rows]
        if rows:
            out.print(table(part.title, part.columns, rows), "")


def seconds_text(seconds: float) -> str:
    """Seconds as `45 s`, `3 min 20 s` or `2 h 5 min`. For estimates; results use `results.units`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def plan_table(plan: Plan) -> Group:
    """Engines and estimated time for each interpreter and workload of the plan."""
    rows = []
    by_place: dict[tuple[str, str], list[Cell]] = {}
    for cell in plan.run.cells:
        by_place.setdefault((cell.interpreter, cell.workload), []).append(cell)
    for (interpreter, workload), cells in by_place.items():
        estimate = sum(plan.cell_seconds(cell) for cell in cells)
        is_missing = interpreter not in plan.interpreters
        time = f"skipped: {remedy(interpreter)}" if is_missing else seconds_text(estimate)
        rows.append((interpreter, workload, ", ".join(cell.engine for cell in cells), time))
    title = f"{plan.run.preset}: {len(plan.run.cells)} cells × {plan.run.blocks} blocks"
    return table(title, ("interpreter", "workload", "engines", "estimate"), rows)
