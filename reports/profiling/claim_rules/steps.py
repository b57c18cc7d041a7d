"""Rules about the anatomy of a step: how long its parts take, and how long the whole of it takes on PyPy."""

from __future__ import annotations

from reports.profiling.anatomy import LABELS, backward_pass, forward_pass, parts_of_pass
from reports.profiling.claim_rules.finding import ABOUT, DOES_NOT, HOLDS, LADDER, Finding, find, missing
from reports.profiling.profile_index import Pair, ProfileIndex
from reports.text.figures import share
from results import units
from results.profile import AnatomyProfile, JitProfile, SymbolProfile
from results.record import BASELINE

SECOND = 1.0
"""A forward pass of one image, as published."""
COUPLE = 2.0
"""Images per second on PyPy, as published."""
MASSIVE = 2.0
"""Factor from which on a speedup counts as massive."""
ON_TOP = 0.1
"""Of the forward pass: a backward pass that takes less is nothing to speak of."""
PAINFUL = 0.1
"""Share of a step from which on a part is a pain point."""
MOST = 0.5
"""Share of a step that all pain points take together, at least."""

_SETS = "sets"
"""A group of perf's symbols."""
_FREEING = ("collector", "free")
"""What takes Values away again: by tracing and by counting references."""


def forward_pass_takes_a_second(index: ProfileIndex, pair: Pair) -> Finding:
    """The anatomy of `baseline`."""
    profile = find(index, pair, BASELINE, AnatomyProfile)
    if profile is None:
        return missing(index, pair, "anatomy", BASELINE)
    seconds = forward_pass(profile)
    figures = f"a forward pass takes {units.duration(seconds)}: {parts_of_pass(profile, 'build', 'forward')}"
    return _about(seconds, SECOND, figures, "long")


def backward_pass_comes_on_top(index: ProfileIndex, pair: Pair) -> Finding:
    """The anatomy of `baseline`."""
    profile = find(index, pair, BASELINE, AnatomyProfile)
    if profile is None:
        return missing(index, pair, "anatomy", BASELINE)
    forward, backward = forward_pass(profile), backward_pass(profile)
    figures = (
        f"a backward pass takes {units.duration(backward)}, {share(backward / forward) if forward else 'all'} of what "
        f"the forward pass takes: {parts_of_pass(profile, 'order', 'backward')}"
    )
    if backward >= ON_TOP * forward:
        return Finding(HOLDS, figures)
    return Finding(DOES_NOT, figures, "it is nothing to speak of beside the forward pass")


def pypy_takes_a_couple_per_second(index: ProfileIndex, pair: Pair) -> Finding:
    """The time of a step of `baseline`, warmed up."""
    found, profiler = _steady(index, pair, BASELINE)
    if BASELINE not in found:
        return missing(index, pair, "anatomy", BASELINE)
    rate = 1 / found[BASELINE]
    text = f"{units.significant(rate)} images per second, {units.duration(found[BASELINE])} each, by {profiler}"
    return _about(rate, COUPLE, text, "many")


def hoisting_speeds_up_pypy(index: ProfileIndex, pair: Pair) -> Finding:
    """The time of a step of `baseline` and of `hoisted`, warmed up, by the same profiler."""
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
    """The anatomy of `hoisted`; perf's samples in sets beside it."""
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
    """The anatomy of `hoisted`, ordering left out."""
    profile = find(index, pair, LADDER[-1], AnatomyProfile)
    if profile is None:
        return missing(index, pair, "anatomy", LADDER[-1])
    freeing = profile.part(*_FREEING)
    figures = (
        f"the collector takes {share(profile.part('collector'))} of a step of {LADDER[-1]}, and counting references "
        f"frees the graph in {share(profile.part('free'))}"
    )
    others = _largest(profile, *_FREEING, "order")
    if freeing >= profile.part(others):
        return Finding(HOLDS, figures)
    return Finding(DOES_NOT, figures, f"{LABELS[others]} takes more than both together, {share(profile.part(others))}")


def graph_and_order_are_the_pain_points(index: ProfileIndex, pair: Pair) -> Finding:
    """The anatomy of `baseline`: the graph is built, collected and freed; the rest is an interpreter's own work."""
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
    """Holds within a factor."""
    if published / ABOUT <= found <= published * ABOUT:
        return Finding(HOLDS, figures)
    return Finding(DOES_NOT, figures, f"that is {units.times(found / published)} as {unit} as published")


def _steady(index: ProfileIndex, pair: Pair, *engines: str) -> tuple[dict[str, float], str]:
    """Seconds of a warmed-up step by engine, all by one profiler, and its name; empty where none saw all of them."""
    anatomies = {engine: find(index, pair, engine, AnatomyProfile) for engine in engines}
    seconds = {engine: one.plain_step_seconds for engine, one in anatomies.items() if one and one.plain_step_seconds}
    if len(seconds) == len(engines):
        return seconds, "anatomy"
    jits = {engine: find(index, pair, engine, JitProfile) for engine in engines}
    seconds = {engine: one.last_step_seconds for engine, one in jits.items() if one and one.last_step_seconds}
    return (seconds, "jit") if len(seconds) == len(engines) else ({}, "")


def _largest(profile: AnatomyProfile, *without: str) -> str:
    """The largest part that has a name: `rest` is none."""
    parts = [part for part in profile.parts if part not in (*without, "rest")]
    return max(parts, key=lambda part: profile.parts[part])
