"""PyPy's own account of its just-in-time compiler, and whether it compiles generated Python."""

from __future__ import annotations

from collections.abc import Mapping

from reports.profiling.profile_index import Pair, ProfileIndex
from reports.text.figures import Figure, Section, Sheet, share_figure
from results import units
from results.profile import JitProfile

GENERATED = "python-source"
"""The engine, and the family of engines, that runs generated Python."""
TOO_LONG = ("too long", "segment")
"""Words in the reason for which PyPy gives up a trace at its limit, or cuts it there."""

TAKES_PART = 0.005
"""Share of the steps' time that goes into tracing and compiling, from which on steps are Python's."""

_LEAD = (
    "PyPy's own account of its just-in-time compiler: shares are of the wall time of all steps, its start included. A "
    "bridge is compiled where a loop is often left; a trace is given up, or cut into segments, at a limit of length. "
    "Below what a step took at the end: the first step, and its ratio to the last ones."
)


def jits(index: ProfileIndex) -> Section | None:
    """A sheet a workload, a row a cell on PyPy, and whether PyPy compiles the generated Python."""
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
    """Traces that met the limit of length: given up or cut."""
    return sum(count for reason, count in profile.aborts.items() if any(words in reason for words in TOO_LONG))


def compiles(profile: JitProfile) -> bool:
    """Whether PyPy ends up running it compiled, without meeting the limit of a trace's length."""
    return profile.loops + profile.bridges > 0 and too_long(profile) == 0


def compiled(engine: str, pair: Pair, profiles: Mapping[str, JitProfile]) -> str:
    """Does PyPy compile it, or blow the trace limit? By the traces given up, and its steps beside other engines'."""
    interpreter, workload = pair
    profile = profiles[engine]
    made = f"{units.count(profile.loops, 'loop')} and {units.count(profile.bridges, 'bridge')}"
    met = too_long(profile)
    if compiles(profile):
        text = f"{interpreter} compiles {engine} on {workload}: {made}, no trace at the limit of length"
    elif met:
        text = f"{interpreter} blows the trace limit on {engine} ({workload}) {units.count(met, 'time')}, beside {made}"
    else:
        text = f"{interpreter} compiled nothing of {engine} on {workload}"
    if profile.last_step_seconds:
        first = units.duration(profile.first_step_seconds)
        text += f"; its steps go from {first} to {_last(profile)}, {_gain(profile)}"
        others = [f"{name} {_gain(one)}" for name, one in profiles.items() if name != engine and _takes_part(one)]
        text += f" as fast; the same of others: {', '.join(others)}" if others else " as fast"
    return f"{text}."


def _takes_part(profile: JitProfile) -> bool:
    """Whether the compiler has something to do with its steps: C has none of it."""
    return profile.tracing + profile.backend >= TAKES_PART and profile.last_step_seconds > 0


def _gain(profile: JitProfile) -> str:
    """How many times as fast as the first the last steps are."""
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
