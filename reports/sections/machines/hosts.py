"""Fleet's run -> each speedup over its hosts: for the machine type, for these hosts, and whether the hosts agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zoomgrad.reports.measured.table import each, in_order, measured
from zoomgrad.reports.sections.cautions import Caution
from zoomgrad.reports.text.figures import Figure, Section, Sheet
from zoomgrad.reports.view import View
from zoomgrad.results import units
from zoomgrad.results.fleet.hosts import by_host
from zoomgrad.results.record import BASELINE, Cell
from zoomgrad.results.samples import step_seconds
from zoomgrad.results.stats import clusters
from zoomgrad.results.stats.intervals import Interval, TooFewProcesses

_LEAD = (
    f"Speedups over {BASELINE} on the same interpreter, from ratios within blocks, each measured by one host. Under "
    "'this machine type', the interval holds for the median machine of the type, and needs three hosts. Under 'these "
    "hosts', it holds for the mean of these hosts only. Hosts differ if they vary more than their blocks explain (F "
    "test, error 1 % over all rows). Every figure in seconds elsewhere comes from one host."
)


@dataclass(frozen=True)
class Hosts:
    """The section, and the cautions that follow from it."""

    section: Section | None
    cautions: tuple[Caution, ...]


def hosts(view: View) -> Hosts:
    """Return the section for a fleet's run; empty for a run on one machine."""
    run = view.run
    if not run.hosts:
        return Hosts(None, ())
    if any(record.shared_host for record in view.records):
        return Hosts(None, (_SHARED,))
    seconds, blocks = step_seconds(view.records), {record.block: record.host for record in view.records if record.host}
    logs: dict[Cell, clusters.Logs] = {}
    for row in each(measured(view.table)):
        cell = Cell(engine=str(row.engine), interpreter=str(row.interpreter), workload=str(row.workload))
        base = cell.model_copy(update={"engine": BASELINE})
        if cell != base and cell in seconds and base in seconds:
            logs[cell] = by_host(seconds[base], seconds[cell], blocks)
    logs = {cell: found for cell, found in logs.items() if found}
    differing = [cell for cell, found in logs.items() if clusters.disagree(found, families=len(logs))]
    sheets = tuple(
        _sheet(workload, logs, differing) for workload in in_order(view.table, "workload") if _of(workload, logs)
    )
    title = f"Over {units.count(len(run.hosts), 'host')}"
    return Hosts(Section("hosts", title, _LEAD, sheets) if sheets else None, tuple(_cautions(view, logs, differing)))


def _of(workload: str, logs: dict[Cell, clusters.Logs]) -> list[Cell]:
    return [cell for cell in logs if cell.workload == workload]


def _sheet(workload: str, logs: dict[Cell, clusters.Logs], differing: Sequence[Cell]) -> Sheet:
    rows = []
    for cell in _of(workload, logs):
        found = logs[cell]
        agreement = Figure("differ", "", "different") if cell in differing else Figure("agree")
        rows.append(
            (
                *(Figure(cell.engine), Figure(cell.interpreter)),
                *(_figure(clusters.of_type, found), _figure(clusters.of_fleet, found)),
                agreement if len(found) > 1 else Figure(units.ABSENT),
                Figure(f"{len(found)}", units.count(sum(map(len, found)), "block")),
            )
        )
    return Sheet(
        workload, 2, ("engine", "interpreter", "this machine type", "these hosts", "hosts", "number"), tuple(rows)
    )


def _figure(interval: object, logs: clusters.Logs) -> Figure:
    try:
        found = interval(logs)  # type: ignore[operator]
    except TooFewProcesses:
        return Figure(units.ABSENT, "too few")
    assert isinstance(found, Interval)
    return Figure(units.ratio(found.value), units.ratio_interval(found.low, found.high))


_SHARED = Caution(
    "The hosts of this fleet were workers on one machine, which disturbed each other: a test of the fleet, without "
    "speedups.",
    "Measure on machines of their own (docs/fleet.md), or without --on.",
)


def _cautions(view: View, logs: dict[Cell, clusters.Logs], differing: Sequence[Cell]) -> list[Caution]:
    found = []
    if differing:
        found.append(
            Caution(
                f"Hosts of one type disagree on {len(differing)} of {units.count(len(logs), 'speedup')}, for example "
                f"{differing[0].key}.",
                "Compare their governors, loads and memory in the run's hosts; measure again without the odd one.",
            )
        )
    if logs and len(view.run.hosts) < clusters.MIN_HOSTS:
        found.append(
            Caution(
                f"{units.count(len(view.run.hosts), 'host')} of this type: the intervals hold for these hosts only.",
                f"Measure on {clusters.MIN_HOSTS} hosts or more for an interval of the machine type.",
            )
        )
    return found
