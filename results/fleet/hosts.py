"""Records of a fleet -> those of one machine type, and ratios of blocks by host.

Hosts are of one type if processor, cores, architecture, kind of system and compilers are the same. Ratios of one type
are combined, with the host as a cluster above the process. Seconds are those of a single host.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from zoomgrad.results.comparability import COMPILERS, same_machine
from zoomgrad.results.record import Cell, HostFacts, Record, Run
from zoomgrad.results.samples import Blocks, common
from zoomgrad.results.stats import clusters
from zoomgrad.results.stats.intervals import Interval, TooFewProcesses

Part = tuple[Run, tuple[Record, ...]]
"""A run as one machine type measured it."""

NAN = float("nan")


def same_type(one: HostFacts, other: HostFacts) -> bool:
    """Whether two hosts are of one machine type. False without facts."""
    tools = all(one.machine.get(name) == other.machine.get(name) for name in COMPILERS)
    return tools and same_machine(one.machine, other.machine)


def types(run: Run) -> list[list[str]]:
    """Names of the hosts of each machine type."""
    found: list[list[str]] = []
    for name, facts in run.hosts.items():
        alike = next((names for names in found if same_type(run.hosts[names[0]], facts)), None)
        if alike:
            alike.append(name)
        else:
            found.append([name])
    return found


def by_type(run: Run, records: Iterable[Record]) -> list[Part]:
    """The run as each machine type measured it, the type with most results first. One part without hosts.

    A cell that only other types measured is left out of a part's plan, because nothing of it is missing.
    """
    records = tuple(records)
    if not run.hosts:
        return [(run, records)]
    parts = []
    measured = {record.cell for record in records if record.host}
    for names in types(run):
        of_type = tuple(record for record in records if record.host in (*names, ""))
        own = {record.cell for record in of_type}
        plan = {
            "machine": run.hosts[names[0]].machine,
            "hosts": {name: run.hosts[name] for name in names},
            "cells": tuple(cell for cell in run.cells if cell in own or cell not in measured),
        }
        parts.append((run.model_copy(update=plan), of_type))
    return sorted(parts, key=lambda part: -sum(record.status == "measured" for record in part[1]))


def main_type(run: Run, records: Iterable[Record]) -> Part:
    """The run as the machine type with most results measured it."""
    return by_type(run, records)[0]


def of_one_host(records: Sequence[Record], by_cell: Mapping[Cell, Sequence[Record]]) -> Sequence[Record]:
    """The cell's records from a single host, because seconds of different machines are never mixed.

    The host is the one that measured most of the cells of the interpreter, if it measured this cell.
    by_cell: all measured records.
    """
    if not any(record.host for record in records):
        return records
    interpreter = records[0].cell.interpreter
    counts = Counter(one.host for cell, found in by_cell.items() if cell.interpreter == interpreter for one in found)
    chosen = max({record.host for record in records}, key=lambda host: (counts[host], host))
    return [record for record in records if record.host == chosen]


def by_host(base: Blocks, other: Blocks, hosts: Mapping[int, str]) -> clusters.Logs:
    """Logarithms of the ratios within blocks, base over other, one sequence per host."""
    found: dict[str, list[float]] = {}
    for block in sorted(base.keys() & other.keys()):
        (over,), (under,) = common({block: base[block]}, {block: other[block]})
        found.setdefault(hosts.get(block, ""), []).append(math.log(fmean(over) / fmean(under)))
    return list(found.values())


def of_hosts(logs: Sequence[Sequence[float]]) -> Interval:
    """A speedup with the interval for its machine type; with fewer than three hosts, for these hosts only.

    Bounds are NaN with too few blocks for either; everything is NaN without a block.
    """
    for interval in (clusters.of_type, clusters.of_fleet):
        try:
            return interval(logs)
        except TooFewProcesses:
            continue
    return Interval(math.exp(fmean(map(fmean, logs))) if logs else NAN, NAN, NAN)
