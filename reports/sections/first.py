"""View -> the first screen: a headline, a ranked table for each workload and interpreter, and its chart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from zoomgrad.reports.charts.trade_off import trade_off
from zoomgrad.reports.measured.headline import by_coverage, leader, status_text
from zoomgrad.reports.measured.outcome import MEASURED
from zoomgrad.reports.measured.table import each, main_rows, measured
from zoomgrad.reports.plot import Drawing
from zoomgrad.reports.text.figures import Bar, Figure, Sheet, bits, compile_time, epoch_time, listed
from zoomgrad.reports.view import View
from zoomgrad.results import units
from zoomgrad.results.record import BASELINE, Cell, Record

HEADINGS = ("", "engine", "compile", "an epoch", "95 % interval", "speedup", "bits")
CAPTION = "Medians of processes, corrected to the run's median pace, so times and speedups divide. ≈: extrapolated."
LEGEND = (
    "Identical: the bits of tuple, which is micrograd with its children in order. baseline, micrograd as published, "
    "keeps them in a set, so its last bits vary. Bars: 95 % intervals, log scale. Grey: for comparison. "
    "Open a row for its values in order; pale: warm-up."
)
Span = tuple[str, bool]
"""A part of the headline, and whether it is a figure."""


@dataclass(frozen=True)
class Values:
    """All values of a cell, in order, as SVG paths through dots in a frame of 1000 by 40."""

    text: str
    """The number of processes, and the range of the values."""
    timed: str
    warm_up: str
    median: float


@dataclass(frozen=True)
class Line:
    """A row of the ranked table."""

    idea: str
    figures: tuple[Figure, ...]
    """One for each of HEADINGS."""
    is_ranked: bool
    values: Values | None


@dataclass(frozen=True)
class Panel:
    """The engines of one workload on one interpreter, fastest first, and their trade-off."""

    workload: str
    interpreter: str
    lines: tuple[Line, ...]
    chart: Drawing | None
    missing: str
    """The engines without a result here; empty if there are none."""

    @property
    def sheet(self) -> Sheet:
        """The panel as a plain table, for Markdown and the terminal."""
        notes = (self.missing,) if self.missing else ()
        rows = ((*line.figures[:4], Figure(line.figures[4].text), *line.figures[5:]) for line in self.lines)
        return Sheet(f"{self.workload} on {self.interpreter}", 2, HEADINGS, tuple(rows), notes)


def headline(view: View) -> tuple[Span, ...]:
    """Return the headline: what the fastest engine costs to compile and for an epoch, and what it gains."""
    rows = view.table[view.table["workload"] == view.headline_workload]
    row = leader(rows[rows["epoch_seconds"].notna()])
    if not view.run.blocks and view.run.cells:
        return (("This run has profiles only: it timed nothing.", False),)
    if row is None:
        what = "No engine with identical bits was measured." if len(measured(view.table)) else "Nothing was measured."
        return (("The plan of this run is empty." if view.table.empty else what, False),)
    epoch = epoch_time(row).text
    start: tuple[Span, ...] = ((f"{row.engine} runs an epoch of {row.workload} in ", False),)
    if row.compile_seconds > 0:
        first = f"{row.engine} compiles {row.workload} in "
        start = ((first, False), (compile_time(row.compile_seconds), True), (" and runs an epoch in ", False))
    gain = ""
    if row.speedup_low <= 1:
        gain = f", not measurably faster than {BASELINE}"
    elif row.speedup > 1:
        gain = f": {units.significant(row.speedup)} times as fast as micrograd"
    return (*start, (epoch, True), (f"{gain}, with identical bits.", False))


def correctness(view: View) -> str:
    """Say whether the results are correct, or which are not."""
    wrong = [cell.key for cell, outcome in view.outcomes.items() if outcome.bits == "different"]
    if wrong:
        verb, whose = ("result is", "its time is") if len(wrong) == 1 else ("results are", "their times are")
        return f"{len(wrong)} {verb} wrong, so {whose} not shown: {listed(wrong, 4)}."
    return "All results are correct." if len(measured(view.table)) else ""


def coverage(view: View) -> str:
    """Say how many cells were measured."""
    done, planned = len(measured(view.table)), len(view.table)
    return f"{'All' if done == planned else f'{done} of'} {units.count(planned, 'cell')} measured." if planned else ""


def panels(view: View) -> tuple[Panel, ...]:
    """Return one panel for each workload and interpreter with a result, the headline's first."""
    values = dict(_values(view.records))
    shown = []
    for workload in view.workloads(view.table):
        rows = view.table[view.table["workload"] == workload]
        for interpreter in by_coverage(rows):
            here = rows[rows["interpreter"] == interpreter]
            shown.append(_panel(view, workload, interpreter, here, values))
    return tuple(shown)


def _panel(view: View, workload: str, interpreter: str, rows: pd.DataFrame, values: Mapping[Cell, Values]) -> Panel:
    known = measured(rows)
    known = known[known["epoch_seconds"].notna()]
    ranked = view.ranked(known)
    fastest_peer = known[known["peer"] != ""].sort_values("epoch_seconds").index[:1]
    shown = known.loc[main_rows(known).index.union(fastest_peer)].sort_values("epoch_seconds", kind="stable")
    at = _scale(shown) if len(shown) else float
    lines, rank = [], 0
    for index, row in zip(shown.index, each(shown), strict=True):
        is_ranked = index in ranked.index
        rank += is_ranked
        facts = view.run.engines.get(str(row.engine))
        cell = Cell(engine=str(row.engine), interpreter=interpreter, workload=workload)
        figures = _figures(f"{rank}" if is_ranked else "", row, _bars(row, at))
        lines.append(Line(facts.idea if facts else "", figures, is_ranked, values.get(cell)))
    name = f"compile_against_epoch-{workload}-{interpreter}"
    chart = trade_off(name, shown, shown.loc[shown.index.intersection(ranked.index)])
    return Panel(workload, interpreter, tuple(lines), chart, _missing(rows))


def _figures(rank: str, row: Any, bars: tuple[Bar, ...]) -> tuple[Figure, ...]:
    epoch = epoch_time(row)
    return (
        Figure(rank),
        Figure(str(row.engine)),
        Figure(compile_time(row.compile_seconds)),
        Figure(epoch.text),
        Figure(epoch.below, bars=bars),
        Figure(units.ratio(row.speedup)),
        bits(row),
    )


def _missing(rows: pd.DataFrame) -> str:
    by_status: dict[str, list[str]] = {}
    for row in each(rows[rows["status"] != MEASURED]):
        by_status.setdefault(str(row.status), []).append(str(row.engine))
    parts = (f"{listed(names, 6)} ({status_text(status)})" for status, names in by_status.items())
    return f"Without a result: {'; '.join(parts)}." if by_status else ""


def _scale(rows: pd.DataFrame) -> Callable[[float], float]:
    """Return the function from the time of an epoch to its place on the rows' logarithmic scale."""
    seconds = rows[["epoch_seconds", "epoch_seconds_low", "epoch_seconds_high"]]
    low, high = math.log(seconds.min().min() / 1.1), math.log(seconds.max().max() * 1.1)
    return lambda epoch: (math.log(epoch) - low) / (high - low)


def _bars(row: Any, at: Callable[[float], float]) -> tuple[Bar, ...]:
    median = Bar("median", at(row.epoch_seconds), 0.0)
    if math.isnan(row.epoch_seconds_low):
        return (median,)
    low, high = at(row.epoch_seconds_low), at(row.epoch_seconds_high)
    return Bar("interval", low, high - low), median


def _values(records: Iterable[Record]) -> Iterator[tuple[Cell, Values]]:
    """Yield the values of each measured cell, in the order of blocks, then of time."""
    by_cell: dict[Cell, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.block):
        if record.status == MEASURED:
            by_cell.setdefault(record.cell, []).append(record)
    for cell, blocks in by_cell.items():
        yield cell, _strip([one.warmup_step_seconds for one in blocks], [one.step_seconds for one in blocks])


def _strip(before: Sequence[Sequence[float]], timed: Sequence[Sequence[float]]) -> Values:
    """Place all values: a gap separates processes, and a warm-up that is far slower is at the upper edge."""
    every = sorted(seconds for values in timed for seconds in values)
    low, high = every[0], every[-1]
    room = (high - low) / 6 or high / 100
    total = sum(map(len, (*before, *timed))) + len(timed)

    def y(seconds: float) -> float:
        return 36 - 32 * min(max((seconds - low + room) / (high - low + 2 * room), 0.0), 1.0)

    paths, place = {"warm": "", "timed": ""}, 0
    for warm, of_process in zip(before, timed, strict=True):
        for kind, values in (("warm", warm), ("timed", of_process)):
            for seconds in values:
                place += 1
                paths[kind] += f"M{1000 * place / total:.0f} {y(seconds):.0f}h0"
        place += 1
    processes = f"{len(timed)} process{'es' if len(timed) > 1 else ''}"
    text = f"{processes}, {units.duration(low)} to {units.duration(high)} a step"
    return Values(text, paths["timed"], paths["warm"], round(y(every[len(every) // 2])))
