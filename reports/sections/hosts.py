"""Fleet's run -> cautions: hosts that disturbed each other, that disagree, or that are too few for their type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from zoomgrad.reports.measured.table import each, measured
from zoomgrad.reports.view import View
from zoomgrad.results import units
from zoomgrad.results.record import Cell
from zoomgrad.results.samples import baseline_of, by_host, step_seconds
from zoomgrad.results.stats import clusters


def hosts(view: View) -> Iterator[str]:
    """Yield the cautions about a fleet; none for a run on one machine.

    Hosts disagree if they vary more than their blocks explain: an F test, with an error of 1 % over all speedups.
    """
    if any(record.shared_host for record in view.records):
        yield "The hosts were workers on one machine, which disturbed each other: measure on machines of their own."
        return
    logs = _logs(view)
    differing = [cell for cell, of_cell in logs.items() if clusters.disagree(of_cell, families=len(logs))]
    if differing:
        speedups = units.count(len(logs), "speedup")
        yield f"Hosts disagree on {len(differing)} of {speedups}, as on {differing[0]}: measure without the odd one."
    if logs and len(view.run.hosts) < clusters.MIN_HOSTS:
        yield f"An interval of the machine type needs {clusters.MIN_HOSTS} hosts: these hold for this fleet only."


def _logs(view: View) -> Mapping[Cell, clusters.Logs]:
    """Return the logarithms of each cell's ratios over baseline, by host; nothing for a run on one machine."""
    blocks = {record.block: record.host for record in view.records if record.host}
    if not blocks:
        return {}
    seconds = step_seconds(view.records)
    logs = {}
    for row in each(measured(view.table)):
        cell = Cell(engine=str(row.engine), interpreter=str(row.interpreter), workload=str(row.workload))
        base = baseline_of(cell)
        if cell != base and cell in seconds and base in seconds:
            logs[cell] = by_host(seconds[base], seconds[cell], blocks)
    return {cell: of_cell for cell, of_cell in logs.items() if of_cell}
