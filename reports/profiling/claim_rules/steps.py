"""Rules about the anatomy of a step: the time of its parts, and the time of a whole step on PyPy."""

from __future__ import annotations

from reports.profiling.anatomy import LABELS, backward_pass, forward_pass, parts_of_pass
from reports.profiling.claim_rules.finding import ABOUT, DOES_NOT, HOLDS, LADDER, Finding, find, missing
from reports.profiling.profile_index import Pair, ProfileIndex
from reports.text.figures import share
from results import units
from results.profile import AnatomyProfile, JitProfile, SymbolProfile
from results.record import BASELINE

SECOND = 1.0
"""Published seconds for a forward pass of one image."""
COUPLE = 2.0
"""Published images per second on PyPy."""
MASSIVE = 2.0
"""Factor from which a speedup counts as massive."""
ON_TOP = 0.1
"""Share of the forward pass below which a backward pass is negligible."""
PAINFUL = 0.1
"""Share of a step from which a part is a pain point."""
MOST = 0.5
"""Least share of a step for all pain points together."""

_SETS = "sets"
"""A group of perf's symbols."""
_FREEING = ("collector", "free")
"""Parts that free Values: by tracing and by reference counting."""


def forward_pass_takes_a_second(index: ProfileIndex, pair: Pair) -> Finding:
    """The anatomy of `baseline`: building and computing."""
    profile = find(index, pair, BASELINE, AnatomyProfile)
    if profile is None:
        return missing(index, pair, "anatomy", BASELINE)
    seconds = forward_pass(profile)
    figures = f"a forward pass takes {units.duration(seconds)}: {parts_of_pass(profile, 'build', 'forward')}"
    return _about(seconds, SECOND, figures, "long")


def backward_pass_comes_on_top(index: ProfileIndex, pair: Pair) -> Finding:
    """The anatomy of `baseline`: ordering and backward, beside the forward pass."""
    profile = find(index, pair, BASELINE, AnatomyProfile)
    if profile is None:
        return missing(index, pair, "anatomy", BASELINE)
    forward, backward = forward_pass(profile), backward_pass(profile)
    figures = (
        f"a backward pass takes {units.duration(backward)}, {share(backward / forward) if forward else 'all'} of the "
        f"forward pass's time: {parts_of_pass(profile, 'order', 'backward')}"
    )
    if backward >= ON_TOP * forward:
        return Finding(HOLDS, figures)
    return Finding(DOES_NOT, figures, "it is negligible beside the forward pass")


def pypy_takes_a_couple_per_second(index: ProfileIndex, pair: Pair) -> Finding:
    """The time of a warmed-up step of `baseline`."""
    found, profiler = _steady(index, pair, BASELINE)
    if BASELINE not in found:
        return missing(index, pair, "anatomy", BASELINE)
    rate = 1 / found[BASELINE]
    text = f"{units.significant(rate)} images per second, {units.duration(found[BASELINE])} each, by {profiler}"
    return _about(rate, COUPLE, text, "many")


def hoisting_speeds_up_pypy(index: ProfileIndex, pair: Pair) -> Finding:
    """The times of a warmed-up step of `baseline` and of `hoisted`, by the same profiler."""
    first, last = LADDER[0], LADDER[-1]
    found, profiler = _steady(index, pair, first, last)
    if not found:
        return missing(index, pair, "anatomy", last if find(index, pair, first, AnatomyProfile) else first)
    gain = found[first] / found[last]
    figures = (
        f"by {profiler}, a step of {first} takes {units.duration(found[first])} and one of {last} "
        f"{units.duration(found[last])}: {last} is {units.times(gain)} as fast"
    )
    if gain >= MASSIVE:
        return Finding(HOLDS, figures)
    return Finding(DOES_NOT, figures, f"that is less than {MASSIVE:g} times")


def ordering_is_slowest_once_hoisted(index: ProfileIndex, pair: Pair) -> Finding:
    """The anatomy of `hoisted`, with perf's share of functions of sets beside it."""
    profile = find(index, pair, LADDER[-1], AnatomyProfile)
    if profile is None:
        return missing(index, pair, "anatomy", LADDER[-1])
    figures = f"ordering takes {share(profile.part('order'))} of a step of {LADDER[-1]}"
    by_perf = find(index, pair, LADDER[-1], SymbolProfile)
    if by_perf is not None:
        figures += f"; {share(by_perf.groups.get(_SETS, 0.0))} of perf's samples are in functions of sets"
    largest = _largest(profile)
    if largest == "order":
        return Finding(HOLDS, figures)
    return Finding(DOES_NOT, figures, f"{LABELS[largest]} takes more, {share(profile.part(largest))}")


def collecting_values_comes_next(index: ProfileIndex, pair: Pair) -> Finding:
    """The anatomy of `hoisted`, without ordering."""
    profile = find(index, pair, LADDER[-1], AnatomyProfile)
    if profile is None:
        return missing(index, pair, "anatomy", LADDER[-1])
    freeing = profile.part(*_FREEING)
    figures = (
        f"the collector takes {share(profile.part('collector'))} of a step of {LADDER[-1]}, and freeing the graph by "
        f"reference counting {share(profile.part('free'))}"
    )
    others = _largest(profile, *_FREEING, "order")
    if freeing >= profile.part(others):
        return Finding(HOLDS, figures)
    return Finding(DOES_NOT, figures, f"{LABELS[others]} takes more than both together, {share(profile.part(others))}")


def graph_and_order_are_the_pain_points(index: ProfileIndex, pair: Pair) -> Finding:
    """The anatomy of `baseline`: building, collecting and freeing the graph, and ordering it; the rest is computing."""
    profile = find(index, pair, BASELINE, AnatomyProfile)
    if profile is None:
        return missing(index, pair, "anatomy", BASELINE)
    graph, order = profile.part("build", *_FREEING), profile.part("order")
    figures = (
        f"recreating the graph takes {share(graph)} of a step ({share(profile.part('build'))} to build it, "
        f"{share(profile.part(*_FREEING))} to collect and free it), ordering it {share(order)}, and computing in the "
        f"interpreter {share(1 - graph - order)}"
    )
    small = [name for name, part in (("recreating the graph", graph), ("ordering it", order)) if part < PAINFUL]
    if small:
        return Finding(DOES_NOT, figures, f"{' and '.join(small)} takes less than {share(PAINFUL)}")
    if graph + order < MOST:
        return Finding(DOES_NOT, figures, "computing in the interpreter takes more than both")
    return Finding(HOLDS, figures)


def _about(found: float, published: float, figures: str, unit: str) -> Finding:
    """Finding that holds if the figure is within a factor of the published one."""
    if published / ABOUT <= found <= published * ABOUT:
        return Finding(HOLDS, figures)
    return Finding(DOES_NOT, figures, f"that is {units.times(found / published)} as {unit} as published")


def _steady(index: ProfileIndex, pair: Pair, *engines: str) -> tuple[dict[str, float], str]:
    """Return seconds per warmed-up step by engine, and the one profiler that saw all of them; empty if none did."""
    anatomies = {engine: find(index, pair, engine, AnatomyProfile) for engine in engines}
    seconds = {engine: one.plain_step_seconds for engine, one in anatomies.items() if one and one.plain_step_seconds}
    if len(seconds) == len(engines):
        return seconds, "anatomy"
    jits = {engine: find(index, pair, engine, JitProfile) for engine in engines}
    seconds = {engine: one.last_step_seconds for engine, one in jits.items() if one and one.last_step_seconds}
    return (seconds, "jit") if len(seconds) == len(engines) else ({}, "")


def _largest(profile: AnatomyProfile, *without: str) -> str:
    """Return the largest part of a step, except `rest` and those in `without`."""
    parts = [part for part in profile.parts if part not in (*without, "rest")]
    return max(parts, key=lambda part: profile.parts[part])
