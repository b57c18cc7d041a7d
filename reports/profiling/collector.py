"""Collector and symbol profiles -> garbage collection as the interpreter reports it, beside perf's samples."""

from __future__ import annotations

from collections.abc import Sequence

from zoomgrad.reports.profiling.profile_index import COLLECTOR, EVALUATION, ProfileIndex
from zoomgrad.reports.text.figures import Figure, Section, Sheet, share_figure
from zoomgrad.results import units
from zoomgrad.results.profile import CollectorProfile, SymbolProfile

_LEAD = (
    "What the interpreter reports about its garbage collector, beside perf's samples. “Collected”: objects found "
    "unreachable. “Left to the collector”: blocks of memory that a step leaves and only the collector can free. The "
    "collector's two shares differ for three reasons: a collection may run code that perf counts elsewhere; one is a "
    "share of wall time, the other of samples; and under perf, an engine that compiles spends half of the time on "
    "preparation."
)


def collectors(index: ProfileIndex) -> Section | None:
    """One sheet per workload: the collector's share, its collections and what they found, by interpreter and engine."""
    by_perf = {profile.cell: profile for profile in index.of(SymbolProfile)}
    found: dict[str, list[CollectorProfile]] = {}
    for profile in index.of(CollectorProfile):
        found.setdefault(profile.cell.workload, []).append(profile)
    if not found:
        return None
    headings = (
        *("interpreter", "engine", "of wall time", "of perf's samples", "collections"),
        *("collected per step", "left to the collector per step", "peak blocks"),
    )
    sheets = tuple(
        Sheet(workload, 2, headings, tuple(_collector(one, by_perf.get(one.cell)) for one in profiles))
        for workload, profiles in found.items()
    )
    return Section("collector", "Garbage collection", _LEAD, sheets)


def _collector(profile: CollectorProfile, by_perf: SymbolProfile | None) -> tuple[Figure, ...]:
    absent = Figure(units.ABSENT)
    counted = profile.blocks_left is not None and profile.steps
    collected = sum(generation.collected for generation in profile.generations)
    return (
        Figure(profile.cell.interpreter),
        Figure(profile.cell.engine),
        share_figure(profile.share, "collector"),
        _of_samples(by_perf),
        Figure(
            " / ".join(f"{generation.collections:,}" for generation in profile.generations) or "none",
            _generations([generation.name for generation in profile.generations]),
        ),
        Figure(_few(collected / profile.steps)) if counted else absent,
        absent if profile.blocks_left is None else Figure(f"{profile.blocks_left:,.0f}"),
        absent if profile.peak_blocks is None else Figure(f"{profile.peak_blocks:,}"),
    )


def _of_samples(profile: SymbolProfile | None) -> Figure:
    # Without a symbol for the evaluation loop, as on PyPy, perf cannot distinguish the collector either.
    if profile is None or EVALUATION not in profile.groups:
        return Figure(units.ABSENT)
    return share_figure(profile.groups.get(COLLECTOR, 0.0), "collector")


def _few(count: float) -> str:
    return f"{count:,.0f}" if count >= 10 or count == 0 else f"{count:.1f}" if count >= 0.05 else "< 0.1"


def _generations(names: Sequence[str]) -> str:
    """Join names, with their common first word once: `generations 0 / 1 / 2`."""
    word, _, _ = names[0].partition(" ") if names else ("", "", "")
    if len(names) > 1 and all(name.startswith(f"{word} ") for name in names):
        return f"{word}s {' / '.join(name.removeprefix(f'{word} ') for name in names)}"
    return " / ".join(names)
