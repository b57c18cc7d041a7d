"""View -> what should make a reader doubt the figures: the cause, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

import pandas as pd

from reports.measured.outcome import MEASURED
from reports.measured.table import measured
from reports.view import View
from results import units
from results.record import BASELINE, Record, Run
from results.stats.intervals import MIN_PROCESSES

BUSY = 0.2
"""Processors kept busy by others from which on a worker was not alone: a machine's own housekeeping takes less."""
UNEVEN, MANY = 1.25, 20
"""From that factor between slow and fast moments on, and so many moments, a machine's own pace is worth a word."""
WIDE = 0.25
"""Half-width of a speedup's interval, relative, from which on it says little more than an order."""


@dataclass(frozen=True)
class Caution:
    """Why figures may mislead, and the remedy."""

    cause: str
    remedy: str


def cautions(view: View) -> list[Caution]:
    """What applies to this run, worst first; nothing for a run that measured nothing."""
    results = [record for record in view.records if record.status == MEASURED]
    if not results:
        return []
    found = (_busy(results), _uneven(results), _too_few(view.run), _wide(view.table), _governor(view.run))
    return [caution for caution in found if caution]


def _busy(results: Sequence[Record]) -> Caution | None:
    loads = [record.other_load for record in results]
    disturbed = sum(load > BUSY for load in loads)
    if disturbed * 4 < len(loads):
        return None
    return Caution(
        f"The machine was busy: others kept {units.significant(median(loads), 2)} of its processors at work (median), "
        f"more than {BUSY:g} during {disturbed:,} of {units.count(len(loads), 'worker')}.",
        "Close what else runs, or choose another hour; on a shared machine believe ratios, not seconds.",
    )


def _uneven(results: Sequence[Record]) -> Caution | None:
    """From the pace of the interpreter that was measured most: each does its own work between values."""
    paces: dict[str, list[float]] = {}
    for record in results:
        paces.setdefault(record.cell.interpreter, []).extend(record.pace_seconds)
    most = max(paces.values(), key=len)
    if len(most) < MANY:
        return None
    tenths = quantiles(most, n=10)
    if tenths[-1] < UNEVEN * tenths[0]:
        return None
    factor = units.times(tenths[-1] / tenths[0])
    return Caution(
        f"The machine itself was faster and slower in turn: the same work took {factor} as long in its slowest tenth "
        "of moments as in its fastest.",
        "Speedups and their intervals allow for it, seconds do not: compare ratios.",
    )


def _too_few(run: Run) -> Caution | None:
    if run.blocks >= MIN_PROCESSES or run.precision:
        return None
    return Caution(
        f"{units.count(run.blocks, 'block')}: too few for an interval, so that a difference may be chance.",
        "Run five (--blocks 5), or as many as a precision takes (--until 5%).",
    )


def _wide(table: pd.DataFrame) -> Caution | None:
    rows = measured(table)
    rows = rows[(rows["engine"] != BASELINE) & rows["speedup_low"].notna()]
    wide = (rows["speedup_high"] - rows["speedup_low"]) / rows["speedup"] / 2 > WIDE
    if wide.sum() * 4 < max(len(rows), 1):
        return None
    return Caution(
        f"{int(wide.sum())} of {units.count(len(rows), 'speedup')} are known to ±{100 * WIDE:.0f} % or worse.",
        "Add blocks until they are narrower: zoomgrad run … --until 10%.",
    )


def _governor(run: Run) -> Caution | None:
    governor = run.machine.get("frequency governor", "performance")
    if governor == "performance":
        return None
    return Caution(
        f"The processors' frequency governor is {governor}: they are faster after a while of work than at its start.",
        "sudo cpupower frequency-set --governor performance",
    )
