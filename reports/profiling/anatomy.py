"""Anatomy profiles -> the parts of a step in seconds and shares, by engine and interpreter."""

from __future__ import annotations

import pandas as pd

from zoomgrad.reports.profiling.profile_index import ProfileIndex, in_runs_order
from zoomgrad.reports.text.figures import Figure, Section, Sheet, share
from zoomgrad.results import units
from zoomgrad.results.profile import PARTS, AnatomyProfile

NAME = "anatomy-of-a-step"

LABELS = {
    "build": "building the graph",
    "forward": "forward",
    "order": "ordering the graph",
    "backward": "backward",
    "update": "update",
    "free": "freeing the graph",
    "collector": "collecting garbage",
    "rest": "rest",
}
"""Part -> its name in sentences and in the chart."""

_LEAD = (
    "Where a step of an interpreted engine spends its time. Each stage is timed separately: seconds per step, and "
    "the share of the step. The parts add up to the step. “Collector”: the garbage collector interrupts every stage; "
    "its pauses are subtracted from the stage and shown in this column. “Build” and “forward”: an engine that builds a "
    "graph for each step computes while it builds. “Forward” is the time of the same model and loss over bare numbers, "
    "which have the same operators and make one object per operation, but do not record children, operation or "
    "backward function; “build” is the rest of that stage. “Order” is the topological sort. “Free” is the time to drop "
    "the last reference: on CPython, reference counting then frees everything outside cycles, and “collector” covers "
    "the rest. “Rest” is reading rows, checking the loss, and the loop. “Timing adds” compares with steps of the same "
    "process in which no stage was timed; with few steps it is mostly noise, and may be negative."
)


def forward_pass(profile: AnatomyProfile) -> float:
    """Seconds that a user waits for the loss: building and computing, including the collections during both."""
    return _with_pauses(profile, "build", "forward")


def backward_pass(profile: AnatomyProfile) -> float:
    """Seconds that a user waits for gradients: ordering and backward, including the collections during both."""
    return _with_pauses(profile, "order", "backward")


def parts_of_pass(profile: AnatomyProfile, *parts: str) -> str:
    """Format parts of a pass: `building the graph 80 ms, forward 15 ms, collections meanwhile 500 ms`."""
    told = [f"{LABELS[part]} {units.duration(profile.parts[part])}" for part in parts]
    pauses = sum(profile.pauses.get(part, 0.0) for part in parts)
    return ", ".join([*told, f"collections meanwhile {units.duration(pauses)}"])


def _with_pauses(profile: AnatomyProfile, *parts: str) -> float:
    return sum(profile.parts[part] + profile.pauses.get(part, 0.0) for part in parts)


def anatomies(index: ProfileIndex) -> Section | None:
    """One sheet per workload, one row per cell; None if there is no such profile."""
    found: dict[str, list[AnatomyProfile]] = {}
    for profile in index.of(AnatomyProfile):
        found.setdefault(profile.cell.workload, []).append(profile)
    if not found:
        return None
    headings = ("interpreter", "engine", "a step", *PARTS, "timing adds")
    sheets = tuple(
        Sheet(workload, 2, headings, tuple(map(_row, profiles)), tuple(_prepared(profiles)))
        for workload, profiles in found.items()
    )
    return Section(NAME, "The anatomy of a step", _LEAD, sheets)


def parts(index: ProfileIndex) -> pd.DataFrame:
    """Chart rows, one per measured profile and part: the part's share of the step, and the whole step's seconds."""
    rows = [
        (cell.engine, cell.interpreter, cell.workload, LABELS[part], profile.part(part), profile.step_seconds)
        for profile in index.of(AnatomyProfile)
        for cell in [profile.cell]
        for part in PARTS
    ]
    columns = ["engine", "interpreter", "workload", "group", "share", "step_seconds"]
    return in_runs_order(pd.DataFrame(rows, columns=columns), index.run)


def _row(profile: AnatomyProfile) -> tuple[Figure, ...]:
    cell = profile.cell
    added = profile.overhead
    return (
        Figure(cell.interpreter),
        Figure(cell.engine),
        Figure(units.duration(profile.step_seconds), units.count(profile.steps, "step")),
        *(_part(profile, part) for part in PARTS),
        Figure(units.ABSENT if added != added else f"{100 * added:+.1f} %"),
    )


def _part(profile: AnatomyProfile, part: str) -> Figure:
    seconds = profile.parts[part]
    return Figure(units.duration(seconds), share(profile.part(part))) if seconds else Figure("0")


def _prepared(profiles: list[AnatomyProfile]) -> list[str]:
    """Notes on engines that build and order their graph once, before the first step."""
    by_engine: dict[str, list[str]] = {}
    for profile in profiles:
        if profile.preparation_seconds:
            told = f"{units.duration(profile.preparation_seconds)} on {profile.cell.interpreter}"
            by_engine.setdefault(profile.cell.engine, []).append(told)
    return [
        f"{engine} builds and orders its graph once, before the first step: {', '.join(told)}. Its steps do neither, "
        "and free nothing."
        for engine, told in by_engine.items()
    ]
