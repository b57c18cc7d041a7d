"""Run, records and profiles -> everything a report says, as text. The HTML and Markdown pages only lay it out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zoomgrad.reports.profiling.profile_index import ProfileIndex
from zoomgrad.reports.sections.absences import absences
from zoomgrad.reports.sections.certainty import cautions, certainty
from zoomgrad.reports.sections.compiling import compiling
from zoomgrad.reports.sections.epochs import epochs
from zoomgrad.reports.sections.first import Panel, Span, correctness, coverage, headline, panels
from zoomgrad.reports.sections.ideas import ideas
from zoomgrad.reports.sections.interpreters import interpreters
from zoomgrad.reports.sections.machine import machine
from zoomgrad.reports.sections.peers import peers
from zoomgrad.reports.sections.published import published
from zoomgrad.reports.sections.time_goes import time_goes
from zoomgrad.reports.text.figures import Section
from zoomgrad.reports.view import View, view
from zoomgrad.results.record import Record, Run, Vouching

OPEN = 2
"""Sections that are open when a reader arrives."""


@dataclass(frozen=True)
class Story:
    """Everything a report says: the first screen, then one question after the other."""

    view: View
    headline: tuple[Span, ...]
    coverage: str
    correctness: str
    panels: tuple[Panel, ...]
    cautions: tuple[str, ...]
    sections: tuple[Section, ...]
    profile_index: ProfileIndex | None

    @property
    def title(self) -> str:
        """The headline as plain text."""
        return "".join(text for text, _ in self.headline)


def story(
    run: Run,
    records: Iterable[Record],
    profile_index: ProfileIndex | None = None,
    vouchings: Sequence[Vouching] = (),
) -> Story:
    """Return the story of a run, which may be unfinished."""
    of_run = view(run, records)
    doubts = cautions(of_run)
    sections = (
        epochs(of_run),
        ideas(of_run),
        compiling(of_run),
        interpreters(of_run),
        time_goes(profile_index),
        peers(of_run),
        published(of_run),
        certainty(of_run, doubts, vouchings),
        absences(of_run, profile_index),
        machine(of_run),
    )
    return Story(
        of_run,
        headline(of_run),
        coverage(of_run),
        correctness(of_run),
        panels(of_run),
        tuple(doubts),
        tuple(section for section in sections if section),
        profile_index,
    )
