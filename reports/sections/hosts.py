"""Fleet's run -> each speedup over its hosts: for the machine type, for these hosts, and whether the hosts agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from zoomgrad.reports.measured.table import each, measured
from zoomgrad.reports.text.figures import Figure, Sheet
from zoomgrad.reports.view import View
from zoomgrad.results import units
from zoomgrad.results.record import Cell
from zoomgrad.results.samples import baseline_of, by_host, step_seconds
from zoomgrad.results.stats import clusters
from zoomgrad.results.stats.intervals import Interval, TooFewProcesses

_NOTE = (
    "Speedups over baseline from ratios within blocks. “This machine type”: the interval holds for the median "
    "machine of the type, and needs three hosts. “These hosts”: for the mean of these hosts only. Hosts differ if they "
    "vary more than their blocks explain (F test, error 1 % over all rows)."
)
_SHARED = "The hosts were workers on one machine, which disturbed each other: measure on machines of their own."


def hosts(view: View) -> tuple[Sheet | None, list[str]]:
    """Return the table for a fleet's run, and the cautions that follow from it; nothing for a run on one machine."""
    if not view.run.hosts:
        return None, []
    if any(record.shared_host for record in view.records):
        return None, [_SHARED]
    logs = _logs(view)
    differing = [cell for cell, of_cell in logs.items() if clusters.disagree(of_cell, families=len(logs))]
    rows = tuple(_row(cell, of_cell, cell in differing) for cell, of_cell in logs.items())
    headings = ("engine", "interpreter", "workload", "this machine type", "these hosts", "hosts", "number")
    sheet = Sheet(f"Over {units.count(len(view.run.hosts), 'host')}", 3, headings, rows, (_NOTE,)) if rows else None
    return sheet, list(_cautions(view, len(logs), differing))


def _logs(view: View) -> Mapping[Cell, clusters.Logs]:
    """Logarithms of each cell's ratios over baseline, by host."""
    seconds, blocks = step_seconds(view.records), {record.block: record.host for record in view.records if record.host}
    found = {}
    for row in each(measured(view.table)):
        cell = Cell(engine=str(row.engine), interpreter=str(row.interpreter), workload=str(row.workload))
        base = baseline_of(cell)
        if cell != base and cell in seconds and base in seconds:
            found[cell] = by_host(seconds[base], seconds[cell], blocks)
    return {cell: logs for cell, logs in found.items() if logs}


def _row(cell: Cell, logs: clusters.Logs, differs: bool) -> tuple[Figure, ...]:
    agreement = Figure("differ", "", "different") if differs else Figure("agree" if len(logs) > 1 else units.ABSENT)
    return (
        *(Figure(cell.engine), Figure(cell.interpreter), Figure(cell.workload)),
        *(_figure(clusters.of_type, logs), _figure(clusters.of_fleet, logs), agreement),
        Figure(f"{len(logs)}", units.count(sum(map(len, logs)), "block")),
    )


def _figure(interval: Callable[[clusters.Logs], Interval], logs: clusters.Logs) -> Figure:
    try:
        found = interval(logs)
    except TooFewProcesses:
        return Figure(units.ABSENT, "too few")
    return Figure(units.ratio(found.value), units.ratio_interval(found.low, found.high))


def _cautions(view: View, count: int, differing: list[Cell]) -> Iterator[str]:
    if differing:
        yield f"Hosts disagree on {len(differing)} of {units.count(count, 'speedup')}: measure without the odd one."
    if count and len(view.run.hosts) < clusters.MIN_HOSTS:
        yield f"An interval of the machine type needs {clusters.MIN_HOSTS} hosts: these hold for this fleet only."
