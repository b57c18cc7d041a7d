"""Memory profiles -> memory over time: its start, its peak, and whether its floor rises."""

from __future__ import annotations

from zoomgrad.reports.profiling.profile_index import ProfileIndex
from zoomgrad.reports.text.figures import Figure, Section, Sheet
from zoomgrad.results import units
from zoomgrad.results.profile import MemoryProfile

NAME = "memory-over-time"

_LEAD = (
    "Resident memory of the process while an interpreted engine trains, read every few milliseconds after its "
    "preparation. If only the garbage collector can free a graph, memory is a sawtooth: it rises until a collection, "
    "whatever the program does. A leak shows in the floor, the least memory within a stretch of time. The table gives "
    "the floors of the first and the last third of the time after the warm-up. The warm-up is the first step or the "
    "first quarter of the time, whichever is longer; until then the heap grows to its working size."
)


def memories(index: ProfileIndex) -> Section | None:
    """One sheet per workload, one row per cell; None if no profile has points."""
    found: dict[str, list[MemoryProfile]] = {}
    for profile in index.of(MemoryProfile):
        if profile.points:
            found.setdefault(profile.cell.workload, []).append(profile)
    if not found:
        return None
    headings = ("interpreter", "engine", "start", "peak", "floor, first third", "floor, last third", "steps")
    sheets = tuple(Sheet(workload, 2, headings, tuple(map(_row, profiles))) for workload, profiles in found.items())
    return Section(NAME, "Memory over time", _LEAD, sheets)


def _row(profile: MemoryProfile) -> tuple[Figure, ...]:
    first, last = profile.floor_bytes(0), profile.floor_bytes(2)
    change = f"{100 * (last / first - 1):+.1f} %" if first and last else ""
    return (
        Figure(profile.cell.interpreter),
        Figure(profile.cell.engine),
        Figure(units.size(profile.points[0].resident_bytes)),
        Figure(units.size(profile.peak_bytes)),
        Figure(units.ABSENT if first is None else units.size(first)),
        Figure(units.ABSENT if last is None else units.size(last), change),
        Figure(f"{profile.steps:,}"),
    )
