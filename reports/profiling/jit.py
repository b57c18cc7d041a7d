"""JIT profiles -> what PyPy reports about its just-in-time compiler, and whether it compiles generated Python."""

from __future__ import annotations

from collections.abc import Mapping

from zoomgrad.reports.profiling.profile_index import Pair, ProfileIndex
from zoomgrad.reports.text.figures import Figure, Section, Sheet, share_figure
from zoomgrad.results import units
from zoomgrad.results.profile import JitProfile

GENERATED = "python-source"
"""Name of the engine, and prefix of the engine family, that runs generated Python."""
TOO_LONG = ("too long", "segment")
"""Words in PyPy's reason if it gives up a trace at the length limit, or cuts it there."""

TAKES_PART = 0.005
"""Least share of the steps' time spent on tracing and compiling for an engine whose steps run as Python."""

_LEAD = (
    "What PyPy reports about its just-in-time compiler. Shares are of the wall time of all steps, including the "
    "warm-up. PyPy compiles a bridge where a loop is often left. It gives up a trace that reaches a length limit, or "
    "cuts it into segments. “Last steps” is the time of a step at the end, with the first step and the ratio of the "
    "two."
)


def jits(index: ProfileIndex) -> Section | None:
    """One sheet per workload, one row per cell on PyPy, and a note on whether PyPy compiles the generated Python."""
    sheets: dict[str, list[JitProfile]] = {}
    for profile in index.of(JitProfile):
        sheets.setdefault(profile.cell.workload, []).append(profile)
    if not sheets:
        return None
    headings = (
        *("engine", "interpreter", "tracing", "back end", "loops", "bridges", "operations", "machine code"),
        *("given up", "last steps"),
    )
    answers = {
        profile.cell: compiled(engine, pair, on_pair)
        for pair, on_pair in index.by_pair(JitProfile).items()
        for engine, profile in on_pair.items()
        if is_generated(engine)
    }
    told = tuple(
        Sheet(
            workload,
            2,
            headings,
            tuple(map(_jit, found)),
            tuple(answers[one.cell] for one in found if one.cell in answers),
        )
        for workload, found in sheets.items()
    )
    return Section("jit", "PyPy's compiler", _LEAD, told)


def is_generated(engine: str) -> bool:
    """Whether the engine runs generated Python."""
    return engine == GENERATED or engine.startswith(f"{GENERATED}-")


def too_long(profile: JitProfile) -> int:
    """Count the traces that reached the length limit: given up or cut."""
    return sum(count for reason, count in profile.aborts.items() if any(words in reason for words in TOO_LONG))


def compiles(profile: JitProfile) -> bool:
    """Whether PyPy ends up running it compiled, with no trace at the length limit."""
    return profile.loops + profile.bridges > 0 and too_long(profile) == 0


def compiled(engine: str, pair: Pair, profiles: Mapping[str, JitProfile]) -> str:
    """Say whether PyPy compiles the engine or blows the trace limit, and compare its steps' gain with other engines'.

    An engine blows the limit if traces were given up or cut there.
    """
    interpreter, workload = pair
    profile = profiles[engine]
    made = f"{units.count(profile.loops, 'loop')} and {units.count(profile.bridges, 'bridge')}"
    met = too_long(profile)
    if compiles(profile):
        text = f"{interpreter} compiles {engine} on {workload}: {made}, and no trace reached the length limit"
    elif met:
        text = (
            f"{interpreter} blows the trace limit on {engine} ({workload}) {units.count(met, 'time')}, compiling {made}"
        )
    else:
        text = f"{interpreter} compiled nothing of {engine} on {workload}"
    if profile.last_step_seconds:
        first = units.duration(profile.first_step_seconds)
        text += f"; its steps go from {first} to {_last(profile)}, {_gain(profile)}"
        others = [f"{name} {_gain(one)}" for name, one in profiles.items() if name != engine and _takes_part(one)]
        text += f" as fast; for comparison: {', '.join(others)}" if others else " as fast"
    return f"{text}."


def _takes_part(profile: JitProfile) -> bool:
    """Whether PyPy's compiler takes part in its steps; an engine that runs C needs none of it."""
    return profile.tracing + profile.backend >= TAKES_PART and profile.last_step_seconds > 0


def _gain(profile: JitProfile) -> str:
    """Format how many times as fast the last steps are as the first."""
    return units.ratio(profile.first_step_seconds / profile.last_step_seconds)


def _jit(profile: JitProfile) -> tuple[Figure, ...]:
    first, last = profile.first_step_seconds, profile.last_step_seconds
    reasons = ", ".join(f"{reason}: {count:,}" for reason, count in profile.aborts.items())
    return (
        Figure(profile.cell.engine),
        Figure(profile.cell.interpreter),
        share_figure(profile.tracing, "python"),
        share_figure(profile.backend, "native"),
        Figure(f"{profile.loops:,}"),
        Figure(f"{profile.bridges:,}"),
        Figure(f"{profile.operations:,}"),
        Figure(units.size(profile.machine_code_bytes)),
        Figure(f"{sum(profile.aborts.values()):,}", reasons, "wraps steep" if too_long(profile) else "wraps"),
        Figure(_last(profile), f"first {units.duration(first)}, {units.ratio(first / last)}" if last else ""),
    )


def _last(profile: JitProfile) -> str:
    return units.duration(profile.last_step_seconds) if profile.last_step_seconds else units.ABSENT
