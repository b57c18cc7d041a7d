"""Line profiles -> the hottest lines of each cell, and links to Scalene's own pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from zoomgrad.reports.profiling.profile_index import ProfileIndex, page_of
from zoomgrad.reports.text.figures import Bar, Figure, Link, Sheet, share
from zoomgrad.results import units
from zoomgrad.results.profile import Line, LineProfile

HOTTEST = 5
"""Rank up to which a line is one of the hottest."""
SHOWN = 3
"""Lines shown for each cell."""
CALLERS = ("engines/kernel/library.py", "engines/straight/published.py")
"""Files whose hottest line calls compiled C, where Scalene sees no lines."""
KINDS = ("python", "native", "system")

_NOTE = (
    "By Scalene, in shares of each profile's own samples. Bars: Python, native code that the line called, and the "
    "system. Cells whose hottest line calls compiled C are left out, because Scalene sees no lines there."
)


def by_cpu(profile: LineProfile) -> list[Line]:
    """Sort the profile's lines by CPU time, largest first; omit lines without any."""
    return sorted((line for line in profile.lines if line.cpu > 0), key=lambda line: -line.cpu)


def by_allocation(profile: LineProfile) -> list[Line]:
    """Sort the profile's lines by allocated bytes, largest first; omit lines without any."""
    return sorted((line for line in profile.lines if line.allocated_bytes > 0), key=lambda line: -line.allocated_bytes)


def hottest(index: ProfileIndex) -> Iterator[Sheet]:
    """Yield a sheet with the hottest lines of each cell, if there are any."""
    rows = [
        row
        for profile in index.of(LineProfile)
        if not any(line.file.endswith(CALLERS) for line in by_cpu(profile)[:1])
        for row in _lines(profile)
    ]
    if rows:
        yield Sheet(
            "The hottest lines",
            4,
            ("interpreter", "engine", "line", "source", "CPU time", "allocated"),
            tuple(rows),
            (_NOTE,),
        )


def pages(index: ProfileIndex) -> Iterator[Sheet]:
    """Yield a sheet of links to Scalene's own pages, if there are any."""
    rows = tuple(
        (
            *map(Figure, (cell.interpreter, cell.engine, cell.workload)),
            Figure("", links=(Link("Scalene's page", page_of(cell)),)),
        )
        for cell in dict.fromkeys(profile.cell for profile in index.profiles)
        if cell in index.pages
    )
    if rows:
        yield Sheet("Whole profiles", 4, ("interpreter", "engine", "workload", "Scalene"), rows)


def _lines(profile: LineProfile) -> Iterator[tuple[Figure, ...]]:
    hot = by_cpu(profile)[:SHOWN] or by_allocation(profile)[:SHOWN]
    longest = max((line.cpu for line in hot), default=0.0)
    for place, line in enumerate(hot):
        bars, start = [], 0.0
        for kind in KINDS if longest else ():
            bars.append(Bar(kind, start, getattr(line, kind) / longest))
            start += getattr(line, kind) / longest
        yield (
            Figure("" if place else profile.cell.interpreter),
            Figure("" if place else profile.cell.engine),
            Figure(f"{PurePosixPath(line.file).name}:{line.line}"),
            Figure(line.source, mark="code"),
            Figure(share(line.cpu), bars=tuple(bars)),
            Figure(units.size(line.allocated_bytes)),
        )
