"""View -> how sure the figures are: intervals, proofs, and reasons to doubt them, each with a remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median, quantiles

import pandas as pd

from zoomgrad.reports.measured.outcome import MEASURED
from zoomgrad.reports.measured.table import measured
from zoomgrad.reports.text.figures import Section
from zoomgrad.reports.view import View
from zoomgrad.results import units
from zoomgrad.results.record import BASELINE, Record, Run, Vouching
from zoomgrad.results.stats.intervals import MIN_PROCESSES

BUSY = 0.2
"""A worker was disturbed if other processes kept more processors busy than this; a machine's own housekeeping uses
less."""
UNEVEN, MANY = 1.25, 20
"""Least ratio of slow to fast samples of the machine's pace, and least number of samples, for a caution."""
WIDE = 0.25
"""Relative half-width above which a speedup's interval gives little more than a ranking."""

PROOF = (
    "A time is shown only if the losses, gradients and parameters of every timed value equal a vouching engine's, or "
    "lie within the declared error bound. Identical: every double is equal."
)
TOLERANCE = "micrograd's set of children has no fixed order, so baseline's last bits vary."


def certainty(view: View, doubts: Sequence[str], vouchings: Sequence[Vouching]) -> Section | None:
    """The answer names the intervals; notes hold the cautions and the proof. None if nothing was measured."""
    rows = measured(view.table)
    if rows.empty:
        return None
    widths = _widths(rows)
    parts = [f"{_processes(rows)} a cell"]
    if len(widths):
        median_width, widest = (f"±{100 * width:.0f} %" for width in (widths.median(), widths.max()))
        parts.append(f"half of the speedups are known to {median_width}, and all to {widest}")
    if doubts:
        parts.append(units.count(len(doubts), "caution"))
    notes = (*doubts, PROOF, *map(_vouched, vouchings), TOLERANCE)
    return Section("certainty", "How sure is this?", "; ".join(parts), (), (), notes)


def cautions(view: View) -> list[str]:
    """Return the cautions that apply to this run, one line each; none if it measured nothing."""
    results = [record for record in view.as_measured if record.status == MEASURED]
    if not results:
        return []
    return [*_fleet(view.run), *_busy(results), *_uneven(results), *_few(view), *_governor(view.run)]


def _widths(rows: pd.DataFrame) -> pd.Series:
    """Return the relative half-widths of the speedups' intervals."""
    rows = rows[(rows["engine"] != BASELINE) & rows["speedup_low"].notna()]
    return (rows["speedup_high"] - rows["speedup_low"]) / rows["speedup"] / 2


def _processes(rows: pd.DataFrame) -> str:
    low, high = int(rows["blocks"].min()), int(rows["blocks"].max())
    return f"{low if low == high else f'{low} to {high}'} process{'' if high == 1 else 'es'}"


def _busy(results: Sequence[Record]) -> Iterator[str]:
    loads = [record.other_load for record in results]
    disturbed = sum(load > BUSY for load in loads)
    if disturbed * 4 >= len(loads):
        used = units.significant(median(loads), 2)
        yield f"Other programs used {used} processors (median): close them, or trust ratios, not seconds."


def _uneven(results: Sequence[Record]) -> Iterator[str]:
    """Use the interpreter that was measured most: paces of different interpreters are not comparable."""
    paces: dict[str, list[float]] = {}
    for record in results:
        paces.setdefault(record.cell.interpreter, []).extend(record.pace_seconds)
    most = max(paces.values(), key=len)
    if len(most) < MANY:
        return
    tenths = quantiles(most, n=10)
    if tenths[-1] >= UNEVEN * tenths[0]:
        factor = units.times(tenths[-1] / tenths[0])
        yield f"The machine's slowest 10 % of samples took {factor} as long as its fastest; times are corrected."


def _few(view: View) -> Iterator[str]:
    widths = _widths(measured(view.table))
    wide = int((widths > WIDE).sum())
    if view.run.blocks < MIN_PROCESSES:
        yield f"{units.count(view.run.blocks, 'block')} is too few for an interval: run with --blocks 5."
    elif wide * 4 >= max(len(widths), 1):
        wide_text = f"{wide} of {units.count(len(widths), 'speedup')}"
        yield f"{wide_text} are known only to ±{100 * WIDE:.0f} % or worse: run with more --blocks."


def _fleet(run: Run) -> Iterator[str]:
    if 0 < len(run.hosts) < MIN_PROCESSES:
        yield f"An interval of the machine type needs {MIN_PROCESSES} hosts: these hold for this fleet only."


def _governor(run: Run) -> Iterator[str]:
    governor = run.machine.get("frequency governor", "performance")
    if governor != "performance":
        yield f"The frequency governor is {governor}: sudo cpupower frequency-set --governor performance."


def _vouched(vouching: Vouching) -> str:
    trusted, *others = vouching.vouchers
    passed = "".join(f" {one.engine} was passed over: {one.reason}." for one in vouching.passed_over)
    names = " and ".join(one.cell.engine for one in others)
    return f"{vouching.workload}: {trusted.cell.engine} vouches for {names}, and these for all others.{passed}"
