"""Run and table -> everything a report says, as text, once. HTML and Markdown differ in how they say it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from reports.absence import Absence, absences
from reports.across import Across, across
from reports.break_even import break_even
from reports.cautions import Caution, cautions
from reports.comparison import comparison
from reports.figures import Section
from reports.glance import at_a_glance
from reports.growth import growth
from reports.headline import Headline, headline
from reports.listing import Listing, listings
from reports.means import means
from reports.native import native_note, noted
from reports.outcome import MEASURED, promise
from reports.phases import phases
from reports.profiles import Profiled, profiled
from reports.published import published
from reports.races import race
from reports.records import EveryRecord, every_record
from reports.seen import Seen
from reports.table import each, in_order
from reports.verdict import verdict
from reports.vouching import vouched
from results import units
from results.record import Cell, Record, Run, Vouching

BASELINE_TOLERANCE = (
    "baseline is compared within a stated tolerance, not bit for bit: micrograd keeps children in a set, whose order "
    "depends on addresses, so gradients may differ in the last bits from run to run."
)
PROFILES_ONLY = "This run timed nothing: it was made for its profiles."


@dataclass(frozen=True)
class Correctness:
    """What one engine promised and kept, over all its cells."""

    engine: str
    promise: str
    outcomes: tuple[str, ...]
    """`identical in 3 cells`, one text an outcome."""
    worst_error: str


@dataclass(frozen=True)
class Curve:
    """First and last point of a workload's longest loss curve."""

    workload: str
    cell: str
    first: str
    last: str


@dataclass(frozen=True)
class Story:
    """What a report says."""

    run: Run
    records: tuple[Record, ...]
    table: pd.DataFrame
    verdict: tuple[str, ...]
    cautions: tuple[Caution, ...]
    glance: Section | None
    comparison: Section | None
    across: Across | None
    headline: Headline | None
    means: Section | None
    published: Section | None
    break_even: Section | None
    phases: Section | None
    growth: Section | None
    looks: Seen | None
    """What profilers saw."""
    profiled: Profiled | None
    listings: tuple[Listing, ...]
    absences: tuple[Absence, ...]
    correctness: tuple[Correctness, ...]
    vouched: tuple[str, ...]
    """Who vouches for the results."""
    tolerance: str
    curves: tuple[Curve, ...]
    every_record: EveryRecord | None
    settings: tuple[tuple[str, str], ...]
    """Name and value of each of the run's settings."""
    command: str


Raced = tuple[Run, Iterable[Record]]
"""A run and its records."""


def story(
    run: Run,
    records: Iterable[Record],
    looks: Seen | None = None,
    against: Raced | None = None,
    others: Sequence[Raced] = (),
    vouchings: Sequence[Vouching] = (),
) -> Story:
    """The whole story of a run, finished or not, looked at with profilers or not, beside other runs or not.

    against: a run that its speedups are set against; others: runs that stand side by side with it.
    """
    records = list(records)
    raced = race(run, records)
    table = raced.table
    beside = across([raced, *(race(*other) for other in others)])

    def told(section: Section | None) -> Section | None:
        return noted(section, run.engines) if section else None

    return Story(
        run=run,
        records=tuple(records),
        table=table,
        verdict=tuple(verdict(table)) if run.blocks or not run.cells else (PROFILES_ONLY,),
        cautions=tuple(cautions(run, records, table)),
        glance=told(at_a_glance(table)),
        comparison=told(comparison(table, race(*against).table, against[0].id)) if against else None,
        across=replace(beside, section=noted(beside.section, run.engines)) if beside else None,
        headline=_headline(run, table),
        means=told(means(table)),
        published=told(published(table)),
        break_even=told(break_even(table)),
        phases=told(phases(table)),
        growth=told(growth(table)),
        looks=looks,
        profiled=profiled(looks) if looks else None,
        listings=listings(run, table),
        absences=_absences(run, table),
        correctness=_correctness(run, table),
        vouched=vouched(vouchings, records),
        tolerance=BASELINE_TOLERANCE,
        curves=tuple(_curves(run, table, records)),
        every_record=every_record(run, records),
        settings=tuple((name.replace("_", " "), f"{value:g}") for name, value in run.settings if value is not None),
        command=shlex.join(run.command),
    )


def _headline(run: Run, table: pd.DataFrame) -> Headline | None:
    found = headline(table)
    return found and replace(found, notes=native_note([rung.engine for rung in found.rows], run.engines))


def _absences(run: Run, table: pd.DataFrame) -> tuple[Absence, ...]:
    planned = (
        (str(row.status), str(row.reason), str(row.remedy), f"{row.engine}/{row.interpreter}/{row.workload}")
        for row in each(table[table["status"] != MEASURED])
    )
    over = f"did not fit into {units.duration(run.budget_seconds)}"
    left_out = (("left out", over, "Give the run longer with --budget.", cell.key) for cell in run.left_out)
    return absences([*planned, *left_out])


def _correctness(run: Run, table: pd.DataFrame) -> tuple[Correctness, ...]:
    found = []
    for engine in in_order(table, "engine"):
        rows = table[table["engine"] == engine]
        # A cell that never got as far as its proof says nothing about the engine's arithmetic.
        rows = rows[rows["worst_error"].notna() | (rows["status"] == MEASURED)]
        counts = rows["bits"].value_counts(sort=False)
        found.append(
            Correctness(
                engine,
                promise(run.engines.get(engine)),
                tuple(f"{bits} in {units.count(int(number), 'cell')}" for bits, number in counts.items())
                or ("never checked",),
                units.error(float(rows["worst_error"].max())),
            )
        )
    return tuple(found)


def _curves(run: Run, table: pd.DataFrame, records: Sequence[Record]) -> Iterable[Curve]:
    shown = {
        Cell(engine=str(row.engine), interpreter=str(row.interpreter), workload=str(row.workload))
        for row in each(table[table["status"] == MEASURED])
    }
    for workload in run.workloads:
        found = [record for record in records if record.cell in shown and record.cell.workload == workload]
        longest = max(found, key=lambda record: record.losses[-1].step if record.losses else -1, default=None)
        if longest is not None and longest.losses:
            first, last = longest.losses[0], longest.losses[-1]
            yield Curve(workload, longest.cell.key, _point(first.step, first.loss), _point(last.step, last.loss))


def _point(step: int, loss: float) -> str:
    text = f"{loss:.4g}" if math.isfinite(loss) else "not finite"
    return f"{text} at step {step:,}"
