"""Compiler profiles -> where C compilers spend their time, and what one large function costs them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from zoomgrad.reports.profiling.profile_index import ProfileIndex
from zoomgrad.reports.text.figures import Bar, Figure, Section, Sheet, share
from zoomgrad.results import units
from zoomgrad.results.profile import CompilerProfile

PASSES = 5
"""Largest passes shown per compiler."""
_UNSPLIT = re.compile(r"-(whole|published)(?=-|$)")
"""Matches the part of an engine's name that says it compiles a pass as one function."""

_LEAD = (
    "What a C compiler reports about one preparation, over all its processes. An engine that compiles a pass as one "
    "function is listed below the engine that splits it into functions for the same compiler."
)


def compilers(index: ProfileIndex) -> Section | None:
    """One sheet per workload: seconds, sizes and largest passes. An engine's whole form follows its split form."""
    profiles = index.of(CompilerProfile)
    if not profiles:
        return None
    headings = (
        *("engine", "interpreter", "total", "units", "source"),
        *(f"{place} pass" for place in ("largest", "2nd", "3rd", "4th", "5th")[:PASSES]),
    )
    sheets = []
    for workload in dict.fromkeys(profile.cell.workload for profile in profiles):
        rows = [profile for profile in profiles if profile.cell.workload == workload]
        firsts = {profile.cell.engine: index for index, profile in reversed(list(enumerate(rows)))}
        rows.sort(key=lambda profile: (firsts.get(split_form(profile.cell.engine), len(rows)), profile.cell.engine))
        sheets.append(Sheet(workload, 2, headings, tuple(map(_compiler, rows)), tuple(_whole(rows))))
    return Section("compiler-passes", "Where C compilers spend their time", _LEAD, tuple(sheets))


def split_form(engine: str) -> str:
    """Return the engine that splits what this one compiles as one function; any other engine is returned as is."""
    return _UNSPLIT.sub("", engine)


def _compiler(profile: CompilerProfile) -> tuple[Figure, ...]:
    largest = [
        Figure(share(one.share), one.name, "wraps", bars=(Bar("native", one.share),)) for one in profile.passes[:PASSES]
    ]
    return (
        Figure(profile.cell.engine),
        Figure(profile.cell.interpreter),
        Figure(units.duration(profile.seconds)),
        Figure(f"{profile.units:,}"),
        Figure(units.size(profile.source_bytes)),
        *largest,
        *[Figure(units.ABSENT)] * (PASSES - len(largest)),
    )


def _whole(rows: Sequence[CompilerProfile]) -> Iterator[str]:
    """Notes on what one large function costs a compiler, from an engine's whole and split forms."""
    by_name = {(profile.cell.engine, profile.cell.interpreter): profile for profile in rows}
    for profile in rows:
        engine, interpreter = profile.cell.engine, profile.cell.interpreter
        split = by_name.get((split_form(engine), interpreter))
        if split is None or split is profile or not split.seconds:
            continue
        text = (
            f"On {interpreter}, compiling {engine} takes {units.ratio(profile.seconds / split.seconds)} as long as "
            f"{split.cell.engine}: {units.duration(profile.seconds)} against {units.duration(split.seconds)}"
        )
        if profile.passes:
            top = profile.passes[0]
            before = next((one.share for one in split.passes if one.name == top.name), None)
            text += f". {top.name} alone takes {share(top.share)} of it"
            text += "" if before is None else f", and {share(before)} in the split form"
        yield f"{text}."
