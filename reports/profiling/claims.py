"""Profiles -> a conclusion for each published claim, on each of this run's interpreters.

A claim names its kind of profile and its engines, computes one figure from their profiles, and holds if the figure is
between two limits. Limits are generous where a machine or a build may differ: a factor of two for times, five points
for shares. The figure is None if the profiles have too few samples.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from zoomgrad.reports.profiling.anatomy import backward_pass, forward_pass
from zoomgrad.reports.profiling.hottest import HOTTEST, by_allocation, by_cpu
from zoomgrad.reports.profiling.profile_index import COLLECTOR, EVALUATION, Pair, ProfileIndex
from zoomgrad.reports.text.figures import Figure, Sheet, share
from zoomgrad.results import units
from zoomgrad.results.profile import AnatomyProfile, Line, LineProfile, Profile, Symbol, SymbolProfile
from zoomgrad.results.record import BASELINE, Cell

MNIST = "mnist"
"""Workload of the published figures."""
HOISTED = "hoisted"
POST, HYPOTHESIS = "the post", "the post, as a hypothesis"
SKYBISON = "the post, of Skybison"

HOLDS, DOES_NOT, NOT_SEEN, NO_PROFILE = "holds", "does not hold", "not seen", "no profile"

PUBLISHED = {"gc_collect_main": 0.3741, "deduce_unreachable": 0.2785, "visit_reachable": 0.0991}
"""perf's shares of baseline in the post, on mnist and CPython 3.10: the collector itself."""
COLLECTING = tuple(PUBLISHED)
PUBLISHED_COLLECTOR = 0.8745
"""The published shares of all functions of the collector, with those that walk one type's objects."""
FORMER_NAMES = {"gc_collect_main": "collect"}
"""Function -> its name in older interpreters."""
TOLERANCE = 0.05
LEAST = 0.002
"""A symbol with a smaller share counts as absent."""
REMAINS = 0.1
"""Fraction of a symbol's previous share; with more left, the symbol was not removed."""

CREATION = re.compile(r"^(?!.*_prev\b.*\bset\()(.*(?<!class )\bValue\(|self\.\w+(: \w+)? = |def __init__)")
CHILDREN = re.compile(r"_prev\b.*\bset\(")
ADDITION, MULTIPLICATION = (re.compile(rf'\bValue\(.*"\{sign}"\)') for sign in "+*")
ZIP = re.compile(r"\bzip\(self\.w, x\)")
DICTIONARY = re.compile(r"^dict_traverse$|Visit(ManagedDict|InstanceAttributes)$")
FUNCTION = re.compile(r"^func_traverse$")


def _written(figure: float) -> str:
    """A figure as text. A line without samples has an infinite rank."""
    return f"{figure:.3g}" if math.isfinite(figure) else "no samples"


@dataclass(frozen=True)
class Claim:
    """A published statement: the figure `of` its profiles must be between `low` and `high`."""

    text: str
    source: str
    what: str
    """Name of the figure."""
    kind: type[Profile]
    engines: tuple[str, ...]
    of: Callable[..., float | None]
    """Takes a profile of `kind` for each of the engines."""
    low: float = -math.inf
    high: float = math.inf
    written: Callable[[float], str] = _written
    interpreters: Literal["cpython", "pypy", ""] = "cpython"
    """First letters of the interpreters that it is about."""
    workload: str = ""
    """The only workload on which the claim can be tested; empty: any."""

    @property
    def criterion(self) -> str:
        """The rule, in words."""
        low, high = (self.written(limit) if math.isfinite(limit) else "" for limit in (self.low, self.high))
        limits = f"from {low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"
        return f"{self.what}, by {self.profiler} on {' and '.join(self.engines)}: {limits}"

    @property
    def profiler(self) -> str:
        return str(self.kind.model_fields["profiler"].default)


def _over(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _rank(
    order: Callable[[LineProfile], list[Line]], patterns: Sequence[re.Pattern[str]], profile: LineProfile
) -> float | None:
    """Return the rank, from 1, of the first line of each pattern; the worst of them."""
    lines = order(profile)
    if not lines:
        return None
    firsts = ([n for n, line in enumerate(lines, 1) if pattern.search(line.source)] for pattern in patterns)
    return max(min(ranks, default=math.inf) for ranks in firsts)


def _spread(before: LineProfile, after: LineProfile) -> float | None:
    return by_cpu(before)[0].cpu - by_cpu(after)[0].cpu if by_cpu(before) and by_cpu(after) else None


def plain(symbol: str) -> str:
    """Strip what a compiler appends to the name of a copy: `dict_traverse.lto_priv.0` becomes `dict_traverse`."""
    return symbol.partition(".")[0]


def _functions(names: Sequence[str], profile: SymbolProfile) -> float | None:
    """Return the share of functions under any of their names; None if the first of them has no samples."""
    shares = [
        sum(one.share for one in profile.symbols if plain(one.name) in (name, FORMER_NAMES.get(name))) for name in names
    ]
    return sum(shares) if shares[0] >= LEAST else None


def _left(pattern: re.Pattern[str], before: SymbolProfile, after: SymbolProfile) -> float | None:
    """Return what is left of functions, as a fraction of their share before; None if they had no samples."""
    was, now = (_share(pattern, profile.symbols) for profile in (before, after))
    return now / was if was >= LEAST else None


def _share(pattern: re.Pattern[str], parts: Sequence[Symbol]) -> float:
    """Return the total share of the parts whose names match."""
    return sum(part.share for part in parts if pattern.search(plain(part.name)))


def _beside_others(parts: Sequence[str], without: Sequence[str], profile: AnatomyProfile) -> float | None:
    """Return parts of a step over the largest other part."""
    others = [seconds for part, seconds in profile.parts.items() if part not in (*parts, *without, "rest")]
    return _over(sum(profile.parts.get(part, 0.0) for part in parts), max(others))


def _architecture(*profiles: SymbolProfile) -> float | None:
    """Return the share of collecting and evaluating in the variant where it is least."""
    return min(sum(profile.groups.get(group, 0.0) for group in (COLLECTOR, EVALUATION)) for profile in profiles)


def _published(text: str, what: str, of: Callable[..., float | None], expected: float) -> Claim:
    """A share in the published table, which holds within the tolerance."""
    text = f"perf shows {text} at {100 * expected:.2f} % of baseline."
    limits = (expected - TOLERANCE, expected + TOLERANCE)
    return Claim(text, POST, what, SymbolProfile, (BASELINE,), of, *limits, share, workload=MNIST)


CLAIMS = (
    Claim(
        "On CPython a forward pass of one image takes about a second.",
        *(POST, "a forward pass", AnatomyProfile, (BASELINE,), forward_pass, 0.5, 2.0, units.duration),
        workload=MNIST,
    ),
    Claim(
        "A backward pass comes on top.",
        *(POST, "the backward pass over the forward pass", AnatomyProfile, (BASELINE,)),
        *(lambda one: _over(backward_pass(one), forward_pass(one)), 0.1),
        written=share,
        workload=MNIST,
    ),
    Claim(
        "On PyPy, a couple of images per second.",
        *(POST, "images per second", AnatomyProfile, (BASELINE,)),
        *(lambda one: _over(1.0, one.plain_step_seconds), 1.0, 4.0),
        interpreters="pypy",
        workload=MNIST,
    ),
    Claim(
        "Hoisting the backward functions massively speeds up PyPy.",
        *(POST, "a step of baseline over one of hoisted", AnatomyProfile, (BASELINE, HOISTED)),
        *(lambda before, after: _over(before.plain_step_seconds, after.plain_step_seconds), 2.0),
        interpreters="pypy",
    ),
    Claim(
        "Once functions are hoisted, the set lookup of the topological sort is the slowest bit.",
        *(SKYBISON, "ordering the graph over the largest other part", AnatomyProfile, (HOISTED,)),
        *(partial(_beside_others, ("order",), ()), 1.0),
    ),
    Claim(
        "After that it is garbage collection from all the transient Values.",
        *(SKYBISON, "collecting and freeing over the largest other part, without ordering", AnatomyProfile, (HOISTED,)),
        *(partial(_beside_others, ("collector", "free"), ("order",)), 1.0),
    ),
    Claim(
        "For all runtimes the pain points are recreating the graph, the topological sort, and interpreter overhead.",
        *(HYPOTHESIS, "recreating the graph and ordering it, of a step", AnatomyProfile, (BASELINE,)),
        *(lambda one: one.part("order", "build", "collector", "free"), 0.5),
        written=share,
        interpreters="",
    ),
    Claim(
        "There is a ton of overhead with the zip in Neuron.__call__.",
        *(HYPOTHESIS, "rank of the line by CPU time", LineProfile, (BASELINE,), partial(_rank, by_cpu, (ZIP,))),
        high=HOTTEST,
    ),
    Claim(
        "Memory goes up and to the right.",
        *(POST, "the memory floor in the last third of the time over that in the first", AnatomyProfile, (BASELINE,)),
        *(lambda one: _over(one.late_floor_bytes, one.early_floor_bytes), 1.1),
    ),
    Claim(
        "Scalene shows the allocation of Values and the set of children among the hottest lines of baseline.",
        *(POST, "the lower rank of the two lines by CPU time", LineProfile, (BASELINE,)),
        partial(_rank, by_cpu, (CREATION, CHILDREN)),
        high=HOTTEST,
    ),
    Claim(
        "Scalene shows a lot of + and * operations, because __add__ and __mul__ allocate a lot.",
        *(POST, "the lower rank of the two lines by allocated bytes", LineProfile, (BASELINE,)),
        partial(_rank, by_allocation, (ADDITION, MULTIPLICATION)),
        high=HOTTEST,
    ),
    _published("gc_collect_main", "its share", partial(_functions, COLLECTING[:1]), PUBLISHED[COLLECTING[0]]),
    _published(
        f"{', '.join(COLLECTING[:-1])} and {COLLECTING[-1]} together",
        *("their share", partial(_functions, COLLECTING), sum(PUBLISHED.values())),
    ),
    _published(
        "the garbage collector",
        *("share of the collector's symbols", lambda one: one.groups.get(COLLECTOR, 0.0), PUBLISHED_COLLECTOR),
    ),
    Claim(
        "Children in a tuple spread the profile.",
        *(POST, "the largest line's share of baseline, less that of tuple", LineProfile, (BASELINE, "tuple"), _spread),
        low=0.01,
        written=share,
    ),
    Claim(
        "Slots remove dict_traverse.",
        *(POST, "left in slots", SymbolProfile, ("tuple", "slots"), partial(_left, DICTIONARY)),
        high=REMAINS,
        written=share,
    ),
    Claim(
        "Hoisting the backward functions removes func_traverse.",
        *(POST, "left in hoisted", SymbolProfile, ("slots", HOISTED), partial(_left, FUNCTION)),
        high=REMAINS,
        written=share,
    ),
    Claim(
        "None of it changes the architecture: collecting garbage and evaluating bytecode stay dominant.",
        *(POST, "share of both, at least", SymbolProfile, (BASELINE, HOISTED), _architecture, 0.5),
        written=share,
    ),
)
UNTESTABLE = (
    "Skybison can no longer be installed, so three claims are not tested: that it is way faster than CPython and PyPy, "
    "that creating functions is its major pain point, and that with hoisted functions PyPy becomes faster."
)


@dataclass(frozen=True)
class Finding:
    """The conclusion about a claim on one interpreter and workload, with the figure or the reason behind it."""

    conclusion: str
    because: str


def check(claim: Claim, index: ProfileIndex, pair: Pair) -> Finding:
    """Compute the claim's figure on one interpreter and workload, and compare it with its limits."""
    profiles = index.by_pair(claim.kind).get(pair, {})
    for engine in claim.engines:
        if engine not in profiles:
            cell = Cell(engine=engine, interpreter=pair[0], workload=pair[1])
            return Finding(NOT_SEEN, index.why_not(cell, claim.profiler))
    value = claim.of(*(profiles[engine] for engine in claim.engines))
    if value is None:
        return Finding(NOT_SEEN, "too few samples or steps; profile longer with --seconds")
    return Finding(HOLDS if claim.low <= value <= claim.high else DOES_NOT, claim.written(value))


def findings(claim: Claim, index: ProfileIndex) -> list[tuple[Pair, Finding]]:
    """Check a claim on every interpreter and workload on which a profiler ran, or tried to, on one of its engines."""
    pairs = dict.fromkeys(
        (profile.cell.interpreter, profile.cell.workload)
        for profile in index.profiles
        if profile.cell.engine in claim.engines
        and claim.workload in ("", profile.cell.workload)
        and profile.cell.interpreter.startswith(claim.interpreters)
    )
    return [(pair, check(claim, index, pair)) for pair in pairs]


def claims(index: ProfileIndex) -> Iterator[Sheet]:
    """Yield a sheet with each claim, its rule and its conclusions, if any profile concerns a claim."""
    checked = [(claim, findings(claim, index)) for claim in CLAIMS]
    if not any(results for _, results in checked):
        return
    rows = tuple(
        (
            Figure(claim.text, mark="reason"),
            Figure(claim.source),
            Figure(claim.criterion, mark="reason"),
            _conclusions(results),
        )
        for claim, results in checked
    )
    yield Sheet("Do the published claims hold?", 4, ("claim", "source", "holds if", "on"), rows, (UNTESTABLE,))


def verdict(index: ProfileIndex) -> str:
    """Count the claims that hold on every interpreter on which they could be tested; empty if none could."""
    seen = [[one.conclusion for _, one in findings(claim, index) if one.conclusion != NOT_SEEN] for claim in CLAIMS]
    tested = [conclusions for conclusions in seen if conclusions]
    holding = sum(set(conclusions) == {HOLDS} for conclusions in tested)
    return f"{holding} of {units.count(len(tested), 'published claim')} hold wherever tested" if tested else ""


def _conclusions(checked: Sequence[tuple[Pair, Finding]]) -> Figure:
    """`cpython-3.13: holds, 528 ms; pypy-3.9: not seen, perf is not installed`; names workloads if several."""
    several = len({workload for (_, workload), _ in checked}) > 1
    texts = (
        f"{interpreter}{f' ({workload})' if several else ''}: {one.conclusion}, {one.because}"
        for (interpreter, workload), one in checked
    )
    return Figure("; ".join(texts) or NO_PROFILE, mark="reason")
