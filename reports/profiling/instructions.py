"""Instructions of a compiled step: the one figure of a report that no noise moves."""

from __future__ import annotations

from reports.measured.outcome import MEASURED
from reports.profiling.profile_index import ProfileIndex
from reports.text.figures import Figure, Section, Sheet
from results import units
from results.profile import COMPARABLE, InstructionsProfile

_LEAD = (
    "Instructions of the compiled code and of what it calls of libm, counted while an engine trained in a process of "
    "its own. The same build counts the same again: a change is one of the code, never of the machine's mood. An "
    "instruction is no unit of time: one over a vector does the work of several. Figures compare where the counter, "
    "the compiler and what it compiled for are the same."
)


def instructions(index: ProfileIndex) -> Section | None:
    """A sheet a workload."""
    profiles = index.of(InstructionsProfile)
    headings = ("engine", "instructions a step", "compiler", "compiled for", "counted by", "steps counted")
    sheets = tuple(
        Sheet(workload, 1, headings, tuple(_row(one) for one in profiles if one.cell.workload == workload))
        for workload in dict.fromkeys(profile.cell.workload for profile in profiles)
    )
    return Section("instructions", "Instructions a step", _LEAD, sheets) if sheets else None


def change(new: InstructionsProfile, old: InstructionsProfile) -> float | str:
    """Instructions a step of the same cell, new over old; or the reason why the two can't be compared.

    Where they can, any ratio but 1 is a change of the compiled code or of libm: a gate needs no interval.
    """
    for profile in (new, old):
        if profile.status != MEASURED:
            return f"{profile.cell.key} was not counted: {profile.reason}"
    differing = [
        f"{name}: {_said(old, name)} then, {_said(new, name)} now"
        for name in COMPARABLE
        if getattr(new, name) != getattr(old, name)
    ]
    if differing:
        return f"{new.cell.key} was counted otherwise: {'; '.join(differing)}"
    return new.step_instructions / old.step_instructions


def _said(profile: InstructionsProfile, name: str) -> str:
    value = getattr(profile, name)
    return (" ".join(value) if isinstance(value, tuple) else str(value)) or "none"


def _row(profile: InstructionsProfile) -> tuple[Figure, ...]:
    return (
        Figure(profile.cell.engine),
        Figure(units.significant(profile.step_instructions, 4)),
        Figure(profile.compiler),
        Figure(profile.target or "this machine"),
        Figure(profile.tool),
        Figure(f"{profile.steps:,}"),
    )
