"""Profiles of one interpreter and workload -> the figure that decides a published claim.

A metric names its kind of profile and its engines. It computes one number from their profiles, in the engines' order;
None means that the profiles have too few samples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from zoomgrad.reports.profiling.anatomy import backward_pass, forward_pass
from zoomgrad.reports.profiling.hottest import by_allocation, by_cpu
from zoomgrad.reports.profiling.jit import compiles
from zoomgrad.reports.profiling.profile_index import COLLECTOR, EVALUATION
from zoomgrad.reports.profiling.published_symbols import COLLECTING, FORMER_NAMES, plain
from zoomgrad.reports.text.figures import share
from zoomgrad.results import units
from zoomgrad.results.profile import (
    AnatomyProfile,
    CompilerProfile,
    JitProfile,
    Line,
    LineProfile,
    MemoryProfile,
    Profile,
    SymbolProfile,
)
from zoomgrad.results.record import BASELINE

HOISTED = "hoisted"
LADDER = (BASELINE, "tuple", "slots", HOISTED)
"""The published variants."""
ARRAYS = "clang-O1-published"
LEAST = 0.002
"""A symbol with a smaller share counts as absent."""
FEWEST_STEPS = 12
"""Three to warm up, and three in each third of the time; with fewer, no third sees a whole tooth of the sawtooth."""

CREATION = re.compile(r"^(?!.*_prev\b.*\bset\()(.*(?<!class )\bValue\(|self\.\w+(: \w+)? = |def __init__)")
CHILDREN = re.compile(r"_prev\b.*\bset\(")
ADDITION, MULTIPLICATION = (re.compile(rf'\bValue\(.*"\{sign}"\)') for sign in "+*")
ZIP = re.compile(r"\bzip\(self\.w, x\)")
DICTIONARY = re.compile(r"^dict_traverse$|Visit(ManagedDict|InstanceAttributes)$")
FUNCTION = re.compile(r"^func_traverse$")
SROA = re.compile(r"^SROA", re.IGNORECASE)


def times(value: float) -> str:
    """Text of a ratio, a rate or a rank."""
    return f"{value:.3g}"


@dataclass(frozen=True)
class Metric:
    """One figure. `what` is its name, and `text` formats it."""

    what: str
    kind: type[Profile]
    engines: tuple[str, ...]
    of: Callable[..., float | None]
    """Takes a profile of `kind` for each of the engines."""
    text: Callable[[float], str] = share


def _over(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _rank(order: Callable[[LineProfile], list[Line]], patterns: Sequence[re.Pattern[str]], profile: LineProfile) -> Any:
    """Return the rank, from 1, of the first line of each pattern; the worst of them."""
    lines = order(profile)
    if not lines:
        return None
    firsts = ([n for n, line in enumerate(lines, 1) if pattern.search(line.source)] for pattern in patterns)
    return max(min(ranks, default=float("inf")) for ranks in firsts)


def _functions(names: Sequence[str], profile: SymbolProfile) -> float | None:
    """Return the share of functions under any of their names; None if the first of them has no samples."""
    shares = []
    for name in names:
        known = {name, *FORMER_NAMES.get(name, ())}
        shares.append(sum(symbol.share for symbol in profile.symbols if plain(symbol.name) in known))
    return sum(shares) if shares[0] >= LEAST else None


def _left(pattern: re.Pattern[str], before: SymbolProfile, after: SymbolProfile) -> float | None:
    """Return what is left of functions, as a fraction of their share before; None if they had no samples."""
    was, now = (
        sum(symbol.share for symbol in profile.symbols if pattern.search(plain(symbol.name)))
        for profile in (before, after)
    )
    return now / was if was >= LEAST else None


def _beside_others(parts: Sequence[str], without: Sequence[str], profile: AnatomyProfile) -> float | None:
    """Return parts of a step over the largest other part."""
    others = [seconds for part, seconds in profile.parts.items() if part not in (*parts, *without, "rest")]
    return _over(sum(profile.parts.get(part, 0.0) for part in parts), max(others))


def _architecture(*profiles: SymbolProfile) -> float | None:
    """Return collecting and evaluating over the largest other group, in the variant where this is least."""
    ratios = []
    for profile in profiles:
        both = sum(profile.groups.get(group, 0.0) for group in (COLLECTOR, EVALUATION))
        others = [part for group, part in profile.groups.items() if group not in (COLLECTOR, EVALUATION)]
        ratios.append(both / max([*others, 1e-9]))
    return min(ratios)


def _floors(profile: MemoryProfile) -> float | None:
    if profile.steps < FEWEST_STEPS:
        return None
    return _over(profile.floor_bytes(2), profile.floor_bytes(0))


_RECREATING = ("build", "collector", "free")

forward_seconds = Metric("a forward pass", AnatomyProfile, (BASELINE,), forward_pass, units.duration)
backward_share = Metric(
    "the backward pass over the forward pass",
    AnatomyProfile,
    (BASELINE,),
    lambda one: _over(backward_pass(one), forward_pass(one)),
)
images_per_second = Metric(
    "images per second",
    AnatomyProfile,
    (BASELINE,),
    lambda one: _over(1.0, one.plain_step_seconds),
    times,
)
gain_of_hoisting = Metric(
    "a step of baseline over one of hoisted",
    AnatomyProfile,
    (BASELINE, HOISTED),
    lambda before, after: _over(before.plain_step_seconds, after.plain_step_seconds),
    times,
)
ordering = Metric(
    "ordering the graph over the largest other part",
    AnatomyProfile,
    (HOISTED,),
    partial(_beside_others, ("order",), ()),
    times,
)
collecting_and_freeing = Metric(
    "collecting and freeing over the largest other part, without ordering",
    AnatomyProfile,
    (HOISTED,),
    partial(_beside_others, ("collector", "free"), ("order",)),
    times,
)
recreating_and_ordering = Metric(
    "recreating the graph and ordering it, of a step",
    AnatomyProfile,
    (BASELINE,),
    lambda one: one.part("order", *_RECREATING),
)
rank_of_the_zip = Metric(
    "rank of the line by CPU time", LineProfile, (BASELINE,), partial(_rank, by_cpu, (ZIP,)), times
)
rank_of_allocation = Metric(
    "the lower rank of the two lines by CPU time",
    LineProfile,
    (BASELINE,),
    partial(_rank, by_cpu, (CREATION, CHILDREN)),
    times,
)
rank_of_adding = Metric(
    "the lower rank of the two lines by allocated bytes",
    LineProfile,
    (BASELINE,),
    partial(_rank, by_allocation, (ADDITION, MULTIPLICATION)),
    times,
)
spread = Metric(
    "the largest line's share of baseline, less that of tuple",
    LineProfile,
    (BASELINE, "tuple"),
    lambda before, after: by_cpu(before)[0].cpu - by_cpu(after)[0].cpu if by_cpu(before) and by_cpu(after) else None,
)
growth = Metric(
    "the memory floor in the last third of the time over that in the first", MemoryProfile, (BASELINE,), _floors, times
)
collecting_function = Metric(
    f"share of {COLLECTING[0]}", SymbolProfile, (BASELINE,), partial(_functions, COLLECTING[:1])
)
collecting_functions = Metric("their share", SymbolProfile, (BASELINE,), partial(_functions, COLLECTING))
collector_group = Metric(
    "share of the collector's symbols", SymbolProfile, (BASELINE,), lambda one: one.groups.get(COLLECTOR, 0.0)
)
dictionaries_left = Metric("left in slots", SymbolProfile, ("tuple", "slots"), partial(_left, DICTIONARY))
functions_left = Metric("left in hoisted", SymbolProfile, ("slots", HOISTED), partial(_left, FUNCTION))
architecture = Metric(
    "both over the largest other group, at least",
    SymbolProfile,
    (BASELINE, HOISTED),
    _architecture,
    times,
)
is_compiled = Metric(
    "loops and bridges, 0 if a trace reached the length limit",
    JitProfile,
    ("python-source",),
    lambda one: float(one.loops + one.bridges) if compiles(one) else 0.0,
    times,
)
sroa = Metric(
    "SROA's share of Clang's time",
    CompilerProfile,
    (ARRAYS,),
    lambda one: sum(each.share for each in one.passes if SROA.search(each.name)) if one.passes else None,
)
