"""View -> cautions: reasons to doubt the figures, each with a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

import pandas as pd

from zoomgrad.reports.measured.outcome import MEASURED
from zoomgrad.reports.measured.table import measured
from zoomgrad.reports.view import View
from zoomgrad.results import units
from zoomgrad.results.record import BASELINE, Record, Run
from zoomgrad.results.stats.intervals import MIN_PROCESSES

BUSY = 0.2
"""A worker was disturbed if other processes kept more processors busy than this; a machine's own housekeeping uses
less."""
UNEVEN, MANY = 1.25, 20
"""Least ratio of slow to fast moments, and least number of moments, for a caution about the machine's pace."""
WIDE = 0.25
"""Relative half-width above which a speedup's interval gives little more than a ranking."""


@dataclass(frozen=True)
class Caution:
    """Why figures may mislead, and what to do about it."""

    cause: str
    remedy: str


def cautions(view: View) -> list[Caution]:
    """Return the cautions that apply to this run, worst first; none if it measured nothing."""
    results = [record for record in view.records if record.status == MEASURED]
    if not results:
        return []
    found = (_busy(results), _uneven(view.as_measured), _too_few(view.run), _wide(view.table), _governor(view.run))
    return [caution for caution in found if caution]


def _busy(results: Sequence[Record]) -> Caution | None:
    loads = [record.other_load for record in results]
    disturbed = sum(load > BUSY for load in loads)
    if disturbed * 4 < len(loads):
        return None
    return Caution(
        f"The machine was busy: other processes used {units.significant(median(loads), 2)} processors (median), more "
        f"than {BUSY:g} during {disturbed:,} of {units.count(len(loads), 'worker')}.",
        "Close other programs, or run again at a quieter time. On a shared machine, trust ratios, not seconds.",
    )


def _uneven(results: Sequence[Record]) -> Caution | None:
    """Use the interpreter that was measured most: paces of different interpreters are not comparable."""
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
        f"The machine's speed varied: the same work took {factor} as long in the slowest tenth of moments as in the "
        "fastest.",
        "Times and speedups are corrected for this; run again at a quieter time to be sure.",
    )


def _too_few(run: Run) -> Caution | None:
    if run.blocks >= MIN_PROCESSES or run.precision:
        return None
    return Caution(
        f"{units.count(run.blocks, 'block')}: too few for an interval, so a difference may be chance.",
        "Run five blocks (--blocks 5), or run until a precision is reached (--until 5%).",
    )


def _wide(table: pd.DataFrame) -> Caution | None:
    rows = measured(table)
    rows = rows[(rows["engine"] != BASELINE) & rows["speedup_low"].notna()]
    wide = (rows["speedup_high"] - rows["speedup_low"]) / rows["speedup"] / 2 > WIDE
    if wide.sum() * 4 < max(len(rows), 1):
        return None
    return Caution(
        f"{int(wide.sum())} of {units.count(len(rows), 'speedup')} are known only to ±{100 * WIDE:.0f} % or worse.",
        "Add blocks until the intervals are narrower: zoomgrad run … --until 10%.",
    )


def _governor(run: Run) -> Caution | None:
    governor = run.machine.get("frequency governor", "performance")
    if governor == "performance":
        return None
    return Caution(
        f"The frequency governor is {governor}: processors reach full speed only after some time under load.",
        "Switch it: sudo cpupower frequency-set --governor performance",
    )
