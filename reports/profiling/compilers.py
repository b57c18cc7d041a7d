"""Compiler profiles -> where C compilers spend their time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from zoomgrad.reports.profiling.profile_index import ProfileIndex
from zoomgrad.reports.text.figures import Figure, Sheet, share
from zoomgrad.results import units
from zoomgrad.results.profile import CompilerProfile

PASSES = 3
"""Largest passes shown per compiler."""
_UNSPLIT = re.compile(r"-(whole|published)\b")
"""Matches the part of an engine's name that says it compiles a pass as one function."""
_NOTE = "What a compiler reports about one preparation, over all its processes."


def compilers(index: ProfileIndex) -> Iterator[Sheet]:
    """Yield a sheet, if there is a profile. An engine that compiles whole passes follows the one that splits them."""
    profiles = index.of(CompilerProfile)
    if not profiles:
        return
    firsts = {profile.cell.engine: place for place, profile in reversed(list(enumerate(profiles)))}
    profiles.sort(key=lambda one: (firsts.get(split_form(one.cell.engine), len(profiles)), one.cell.engine))
    headings = ("engine", "workload", "largest passes", "total", "units", "source")
    yield Sheet("Where C compilers spend their time", 3, headings, tuple(map(_row, profiles)), (_NOTE,))


def split_form(engine: str) -> str:
    """Return the engine that splits what this one compiles as one function; any other engine is returned as is."""
    return _UNSPLIT.sub("", engine)


def _row(profile: CompilerProfile) -> tuple[Figure, ...]:
    passes = ", ".join(f"{one.name} {share(one.share)}" for one in profile.passes[:PASSES])
    return (
        *map(Figure, (profile.cell.engine, profile.cell.workload, passes or units.ABSENT)),
        Figure(units.duration(profile.seconds)),
        Figure(f"{profile.units:,}"),
        Figure(units.size(profile.source_bytes)),
    )
