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
FUSING = "-ffp-contract=fast"

_LEAD = (
    "What a C compiler reports about one preparation, over all its processes. An engine that compiles a pass as one "
    "function is listed below the engine that splits it into functions for the same compiler. “Fusable” counts the "
    "sums of a step with a product among their operands, and “alone” those whose product nothing else reads or keeps. "
    "“Fused” counts the multiply-add instructions in the object; in a recovered loop, or over a vector, one "
    "instruction performs many operations."
)


def compilers(index: ProfileIndex) -> Section | None:
    """One sheet per workload: seconds, sizes and largest passes. An engine's whole form follows its split form."""
    profiles = index.of(CompilerProfile)
    if not profiles:
        return None
    headings = (
        *("engine", "interpreter", "total", "units", "functions", "source", "fusable", "alone", "fused"),
        *(f"{place} pass" for place in ("largest", "2nd", "3rd", "4th", "5th")[:PASSES]),
    )
    sheets = []
    for workload in dict.fromkeys(profile.cell.workload for profile in profiles):
        rows = [profile for profile in profiles if profile.cell.workload == workload]
        firsts = {profile.cell.engine: index for index, profile in reversed(list(enumerate(rows)))}
        rows.sort(key=lambda profile: (firsts.get(split_form(profile.cell.engine), len(rows)), profile.cell.engine))
        sheets.append(Sheet(workload, 2, headings, tuple(map(_compiler, rows)), (*_whole(rows), *_fused(rows))))
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
        Figure(f"{profile.functions:,}"),
        Figure(units.size(profile.source_bytes)),
        _both(profile.fusable_forward, profile.fusable_backward),
        _both(profile.fusable_forward_alone, profile.fusable_backward_alone),
        Figure(units.ABSENT if profile.fused_instructions is None else f"{profile.fused_instructions:,}"),
        *largest,
        *[Figure(units.ABSENT)] * (PASSES - len(largest)),
    )


def _both(forward: int | None, backward: int | None) -> Figure:
    if forward is None or backward is None:
        return Figure(units.ABSENT)
    return Figure(f"{forward + backward:,}", f"{forward:,} forward, {backward:,} backward")


def _fused(rows: Sequence[CompilerProfile]) -> Iterator[str]:
    """Notes on the sums that fusing engines could fuse and did fuse, and on why a count is missing."""
    for profile in rows:
        forward, backward = profile.fusable_forward, profile.fusable_backward
        if FUSING in profile.flags and forward is not None and backward is not None:
            taken = profile.fused_instructions
            text = f"{profile.cell.engine} has {forward + backward:,} fusable sums in a step"
            alone = (profile.fusable_forward_alone or 0) + (profile.fusable_backward_alone or 0)
            yield f"{text}, {forward:,} of them forward and {alone:,} of them alone; {_taken(taken)}."
    for reason in dict.fromkeys(profile.fused_reason for profile in rows if profile.fused_reason):
        yield f"Fused instructions were not counted: {reason}."


def _taken(instructions: int | None) -> str:
    if instructions is None:
        return "fused instructions were not counted"
    return f"its object has {units.count(instructions, 'multiply-add instruction')}"


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
