"""Anatomy profiles -> the parts of a step in seconds and shares, by engine and interpreter."""

from __future__ import annotations

from collections.abc import Iterator

from zoomgrad.reports.profiling.profile_index import ProfileIndex
from zoomgrad.reports.text.figures import Bar, Figure, Sheet, share
from zoomgrad.results import units
from zoomgrad.results.profile import PARTS, AnatomyProfile

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
"""Part -> its name in sentences."""

_NOTE = (
    "Each part is timed by itself, and a garbage collection counts only as collector. An engine that builds a graph "
    "for every step computes while it builds: its “build” includes “forward”. “order” is the topological sort."
)


def forward_pass(profile: AnatomyProfile) -> float:
    """Seconds that a user waits for the loss: building and computing, including the collections during both."""
    return _with_pauses(profile, "build", "forward")


def backward_pass(profile: AnatomyProfile) -> float:
    """Seconds that a user waits for gradients: ordering and backward, including the collections during both."""
    return _with_pauses(profile, "order", "backward")


def largest_parts(index: ProfileIndex) -> str:
    """Name the two largest parts of a step of the first engine; empty without a profile."""
    profiles = index.of(AnatomyProfile)
    on_reference = [one for one in profiles if one.cell.interpreter == index.run.reference_interpreter]
    for profile in (on_reference or profiles)[:1]:
        first, second = sorted(PARTS, key=profile.part, reverse=True)[:2]
        named = (f"{LABELS[part]} ({share(profile.part(part))})" for part in (first, second))
        return f"A step of {profile.cell.engine} on {profile.cell.interpreter}: mostly {' and '.join(named)}"
    return ""


def anatomies(index: ProfileIndex) -> Iterator[Sheet]:
    """Yield one sheet for each workload, with one row for each cell."""
    by_workload: dict[str, list[AnatomyProfile]] = {}
    for profile in index.of(AnatomyProfile):
        by_workload.setdefault(profile.cell.workload, []).append(profile)
    headings = ("interpreter", "engine", "a step", *PARTS)
    for workload, profiles in by_workload.items():
        yield Sheet(f"The anatomy of a step of {workload}", 2, headings, tuple(map(_row, profiles)), (_NOTE,))


def _with_pauses(profile: AnatomyProfile, *parts: str) -> float:
    return sum(profile.parts[part] + profile.pauses.get(part, 0.0) for part in parts)


def _row(profile: AnatomyProfile) -> tuple[Figure, ...]:
    cell, start, bars = profile.cell, 0.0, []
    for number, part in enumerate(PARTS, 1):
        bars.append(Bar(f"s{number}", start, profile.part(part)))
        start += profile.part(part)
    whole = Figure(units.duration(profile.step_seconds), bars=tuple(bars))
    return (Figure(cell.interpreter), Figure(cell.engine), whole, *(_part(profile, part) for part in PARTS))


def _part(profile: AnatomyProfile, part: str) -> Figure:
    seconds = profile.parts[part]
    return Figure(units.duration(seconds), share(profile.part(part))) if seconds else Figure("0")
