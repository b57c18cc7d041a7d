"""Run and records -> everything a report says, as text. The HTML and Markdown pages only lay it out."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zoomgrad.reports.measured.findings import findings
from zoomgrad.reports.measured.outcome import MEASURED, promise
from zoomgrad.reports.measured.table import each, in_order
from zoomgrad.reports.profiling.profile_index import ProfileIndex
from zoomgrad.reports.profiling.profiles import Profiled, profiled
from zoomgrad.reports.sections.break_even import break_even
from zoomgrad.reports.sections.cautions import Caution, cautions
from zoomgrad.reports.sections.compiling.engines import engines
from zoomgrad.reports.sections.compiling.growth import growth
from zoomgrad.reports.sections.compiling.phases import phases
from zoomgrad.reports.sections.compiling.variants import variants
from zoomgrad.reports.sections.glance import at_a_glance
from zoomgrad.reports.sections.hosts import hosts
from zoomgrad.reports.sections.listing import Listing, listings
from zoomgrad.reports.sections.peers import peers
from zoomgrad.reports.sections.published import published
from zoomgrad.reports.sections.vouching import vouched
from zoomgrad.reports.text.absence import Absence, absences
from zoomgrad.reports.text.figures import Section
from zoomgrad.reports.text.native_notes import noted
from zoomgrad.reports.view import View, view
from zoomgrad.results import units
from zoomgrad.results.record import Record, Run, Vouching

BASELINE_TOLERANCE = (
    "baseline is compared within a stated tolerance, not bit for bit: micrograd keeps children in a set, whose order "
    "depends on addresses, so gradients may differ in the last bits from run to run."
)
PROFILES_ONLY = "This run has profiles only: it timed nothing."


@dataclass(frozen=True)
class Correctness:
    """One engine's promise of correct results, and whether its cells kept it."""

    engine: str
    promise: str
    outcomes: tuple[str, ...]
    """One text for each outcome: `identical in 3 cells`."""
    worst_error: str


@dataclass(frozen=True)
class Story:
    """Everything a report says, section by section."""

    view: View
    findings: tuple[str, ...]
    cautions: tuple[Caution, ...]
    glance: Section | None
    hosts: Section | None
    published: Section | None
    break_even: Section | None
    phases: Section | None
    growth: Section | None
    peers: Section | None
    variants: Section | None
    profile_index: ProfileIndex | None
    """The run's profiles, and the files that profilers left."""
    profiled: Profiled | None
    listings: tuple[Listing, ...]
    absences: tuple[Absence, ...]
    correctness: tuple[Correctness, ...]
    vouched: tuple[str, ...]
    """The text on who vouches for the results."""
    tolerance: str
    engines: Section | None
    settings: tuple[tuple[str, str], ...]
    """Name and value of each of the run's settings."""
    command: str


RunRecords = tuple[Run, Iterable[Record]]
"""A run and its records."""


def story(
    run: Run,
    records: Iterable[Record],
    profile_index: ProfileIndex | None = None,
    vouchings: Sequence[Vouching] = (),
    code: str = "",
) -> Story:
    """Return the story of a run, which may be unfinished.

    code: path from the report to the project's folder, so that it may link to files there; empty if it may not.
    """
    found = view(run, records)
    over = hosts(found)
    table, rungs = found.table, found.ladder

    def with_notes(section: Section | None) -> Section | None:
        return noted(section, run.engines) if section else None

    return Story(
        view=found,
        findings=tuple(findings(table, found.headline_workload)) if run.blocks or not run.cells else (PROFILES_ONLY,),
        cautions=(*over.cautions, *cautions(found)),
        hosts=over.section,
        glance=with_notes(at_a_glance(found.headline_rows)),
        published=with_notes(published(table)),
        break_even=with_notes(break_even(rungs)),
        phases=with_notes(phases(rungs)),
        growth=with_notes(growth(rungs)),
        peers=peers(table, {name: facts.batch for name, facts in run.workloads.items()}, code),
        variants=variants(found),
        profile_index=profile_index,
        profiled=profiled(profile_index) if profile_index else None,
        listings=listings(found),
        absences=_absences(found),
        correctness=_correctness(found),
        vouched=vouched(vouchings, found.records),
        tolerance=BASELINE_TOLERANCE,
        engines=engines(found, code),
        settings=tuple((name.replace("_", " "), f"{value:g}") for name, value in run.settings if value is not None),
        command=shlex.join(run.command),
    )


def _absences(view: View) -> tuple[Absence, ...]:
    planned = (
        (str(row.status), str(row.reason), str(row.remedy), f"{row.engine}/{row.interpreter}/{row.workload}")
        for row in each(view.table[view.table["status"] != MEASURED])
    )
    return absences(planned)


def _correctness(view: View) -> tuple[Correctness, ...]:
    found = []
    table = view.table
    for engine in in_order(table, "engine"):
        rows = table[table["engine"] == engine]
        # A cell that stopped before its proof says nothing about the engine's arithmetic.
        rows = rows[rows["worst_error"].notna() | (rows["status"] == MEASURED)]
        counts = rows["bits"].value_counts(sort=False)
        found.append(
            Correctness(
                engine,
                promise(view.run.engines.get(engine)),
                tuple(f"{bits} in {units.count(int(number), 'cell')}" for bits, number in counts.items())
                or ("never checked",),
                units.error(float(rows["worst_error"].max())),
            )
        )
    return tuple(found)
