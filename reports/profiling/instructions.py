"""Instruction profiles -> instructions per compiled step: the only figure in a report without noise."""

from __future__ import annotations

from reports.measured.outcome import MEASURED
from reports.profiling.profile_index import ProfileIndex
from reports.text.figures import Figure, Section, Sheet
from results import units
from results.profile import COMPARABLE, InstructionsProfile

_LEAD = (
    "Instructions executed by the compiled code and the libm functions it calls, counted while an engine trained in a "
    "separate process. The same build gives the same count again, so a change in the count is a change in the code, "
    "not noise. An instruction is not a unit of time: a vector instruction does the work of several. Figures are "
    "comparable only if the counter, the compiler and its target are the same."
)


def instructions(index: ProfileIndex) -> Section | None:
    """One sheet per workload; None if no instructions were counted."""
    profiles = index.of(InstructionsProfile)
    headings = ("engine", "instructions per step", "compiler", "compiled for", "counted by", "steps counted")
    sheets = tuple(
        Sheet(workload, 1, headings, tuple(_row(one) for one in profiles if one.cell.workload == workload))
        for workload in dict.fromkeys(profile.cell.workload for profile in profiles)
    )
    return Section("instructions", "Instructions per step", _LEAD, sheets) if sheets else None


def change(new: InstructionsProfile, old: InstructionsProfile) -> float | str:
    """Return the same cell's instructions per step, new over old, or the reason why the two are not comparable.

    Any ratio other than 1 is a change in the compiled code or in libm, so a gate needs no interval.
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
        return f"{new.cell.key} was counted differently: {'; '.join(differing)}"
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
