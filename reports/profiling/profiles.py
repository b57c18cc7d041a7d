"""Profile index -> the report's part on profiles: its lead, its sections in page order, and its short form."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from zoomgrad.reports.measured.outcome import MEASURED
from zoomgrad.reports.profiling import memory_over_time
from zoomgrad.reports.profiling.anatomy import anatomies, parts
from zoomgrad.reports.profiling.claims import claims
from zoomgrad.reports.profiling.compilers import compilers
from zoomgrad.reports.profiling.hottest import hottest, ladders, pages, top_lines
from zoomgrad.reports.profiling.jit import jits
from zoomgrad.reports.profiling.profile_index import ProfileIndex
from zoomgrad.reports.profiling.symbol_ladder import symbol_ladder
from zoomgrad.reports.text.absence import Absence
from zoomgrad.reports.text.figures import Section
from zoomgrad.reports.text.native_notes import noted
from zoomgrad.results import units

KEY = (
    ("python", "Python"),
    ("native", "native code"),
    ("system", "system"),
    ("memory", "memory"),
)


@dataclass(frozen=True)
class Profiled:
    """Contents of the report's part on profiles."""

    lead: str
    key: tuple[tuple[str, str], ...]
    """Kinds of bars, with their meanings."""
    steps: tuple[Section, ...]
    """Claims, and where a step's time and memory go."""
    lines: tuple[Section, ...]
    """By line of source."""
    symbols: tuple[Section, ...]
    """By function of the interpreter."""
    accounts: tuple[Section, ...]
    """What interpreters and compilers report about themselves."""
    short: tuple[Section, ...]
    """Sections that the Markdown summary keeps."""
    parts: pd.DataFrame
    """Rows of the chart of a step's parts, for one workload, the one with the most rows."""
    absences: tuple[Absence, ...]

    @property
    def missing(self) -> str:
        """Summarize the absences in a sentence."""
        total = sum(len(absence.cells) for absence in self.absences)
        reasons = dict.fromkeys(f"{absence.status}: {absence.reason}" for absence in self.absences)
        return f"{units.count(total, 'profile')} gave no result ({'; '.join(reasons)})."


def profiled(index: ProfileIndex) -> Profiled | None:
    """Build the part on profiles; None if there is no profile."""
    if not index.profiles:
        return None
    anatomy, memory = anatomies(index), memory_over_time.memories(index)
    return Profiled(
        lead=_lead(index),
        key=KEY,
        steps=_present(claims(index), anatomy, memory),
        lines=_present(hottest(index), ladders(index), pages(index)),
        symbols=_present(symbol_ladder(index)),
        accounts=_present(
            jits(index),
            *(noted(section, index.run.engines) for section in (compilers(index),) if section),
        ),
        short=_present(top_lines(index)),
        parts=_of_one_workload(parts(index)),
        absences=index.absences(),
    )


def _lead(index: ProfileIndex) -> str:
    measured = [profile for profile in index.profiles if profile.status == MEASURED]
    by_profiler: dict[str, int] = {}
    for profile in measured:
        by_profiler[profile.profiler] = by_profiler.get(profile.profiler, 0) + 1
    each = ", ".join(f"{name} {count}" for name, count in by_profiler.items())
    seen = f"{len(measured)} of {units.count(len(index.profiles), 'profile')} gave a result"
    return (
        "Where time and memory go, according to profilers that ran separately from all timing. A profiled step is "
        "slower than a timed one, so no figure here is comparable with those above. "
        f"{seen}{f' ({each})' if each else ''}."
    )


def _present(*sections: Section | None) -> tuple[Section, ...]:
    return tuple(section for section in sections if section)


def _of_one_workload(table: pd.DataFrame) -> pd.DataFrame:
    if table.empty:
        return table
    counts = table.groupby("workload", sort=False).size()
    return table[table["workload"] == counts.idxmax()]
