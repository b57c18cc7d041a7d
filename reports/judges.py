"""Rules that decide whether a published claim holds: profiles of one interpreter and workload -> a finding.

A judge says what it saw in figures of the profiles; knowledge of an interpreter's insides is only used to explain a
figure, never to decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from reports.figures import share
from reports.hottest import HOTTEST, by_allocation, by_cpu, ordinal, place, quoted
from reports.jit import compiled, compiles, is_generated, too_long
from reports.seen import COLLECTOR, DICTIONARIES, EVALUATION, Pair, Seen
from results import units
from results.profile import CollectorProfile, JitProfile, Line, LineProfile, Profile, SymbolProfile
from results.record import BASELINE, Cell

LADDER = (BASELINE, "tuple", "slots", "hoisted")
"""The published variants."""
PUBLISHED_COLLECTOR = 0.37
TOLERANCE = 0.05
"""Between a published share and ours: it was another machine, another interpreter."""
MARGIN = 0.01
"""Between two shares below which neither is the larger one."""
LEAST = 0.002
"""A symbol with a smaller share is not there."""
REMAINS = 0.1
"""Of a symbol's share before; with more than that left it was not removed."""

Verdict = Literal["holds", "does not hold", "not seen"]
HOLDS: Final = "holds"
DOES_NOT: Final = "does not hold"
NOT_SEEN: Final = "not seen"

_CREATION = re.compile(r"(?<!class )\bValue\(|^self\.\w+(: \w+)? = |^def __init__")
_CHILDREN = re.compile(r"_prev\b.*\bset\(")
_DICTIONARY = re.compile(r"^dict_traverse$|Visit(ManagedDict|InstanceAttributes)$")
_FUNCTION = re.compile(r"^func_traverse$")
_INLINE_SINCE = (3, 11)
"""From this CPython on attributes lie in the object until somebody asks for its dictionary."""

Kind = TypeVar("Kind", bound=Profile)


@dataclass(frozen=True)
class Finding:
    """What becomes of a claim on one interpreter and workload."""

    verdict: Verdict
    figures: str = ""
    reason: str = ""
    """Why it does not hold, or was not seen."""


def allocation_is_hottest(looks: Seen, pair: Pair) -> Finding:
    """Scalene on `baseline`."""
    profile = _find(looks, pair, BASELINE, LineProfile)
    if profile is None:
        return _missing(looks, pair, "scalene", BASELINE)
    hot, large = by_cpu(profile), by_allocation(profile)
    if not hot:
        return Finding(NOT_SEEN, reason="Scalene took no sample of CPU time")
    children = _first(hot, lambda line: bool(_CHILDREN.search(line.source)))
    creation = _first(hot, lambda line: bool(_CREATION.search(line.source) and not _CHILDREN.search(line.source)))
    figures = [f"hottest is {quoted(hot[0].source)} ({place(hot[0])}) with {share(hot[0].cpu)} of CPU time"]
    figures += [_ranked("making a Value", hot, creation), _ranked("the set of children", hot, children)]
    if large:
        total = sum(line.allocated_bytes for line in large)
        figures.append(
            f"{quoted(large[0].source)} allocates most, {share(large[0].allocated_bytes / total)} of all bytes"
        )
    if 0 in (creation, children) and max(creation, children) < HOTTEST and min(creation, children) >= 0:
        return Finding(HOLDS, "; ".join(figures))
    if creation and children:
        reason = f"the hottest line is another one: {quoted(hot[0].source)}"
    else:
        cold = "the set of children" if creation == 0 else "making a Value"
        reason = f"{cold} is not among the {HOTTEST} hottest lines"
    return Finding(DOES_NOT, "; ".join(figures), reason)


def collector_takes_its_share(looks: Seen, pair: Pair) -> Finding:
    """perf on `baseline`, beside the interpreter's own account."""
    profile = _find(looks, pair, BASELINE, SymbolProfile)
    if profile is None:
        return _missing(looks, pair, "perf", BASELINE)
    found = profile.groups.get(COLLECTOR, 0.0)
    figures = f"{share(found)} of {units.count(profile.samples, 'sample')}"
    own = _find(looks, pair, BASELINE, CollectorProfile)
    if own is not None:
        figures += f"; by the interpreter's own account {share(own.share)} of wall time"
    if abs(found - PUBLISHED_COLLECTOR) <= TOLERANCE:
        return Finding(HOLDS, figures)
    more = "more" if found > PUBLISHED_COLLECTOR else "less"
    reason = f"{100 * abs(found - PUBLISHED_COLLECTOR):.0f} points {more} than published"
    others = {group: part for group, part in profile.groups.items() if group != COLLECTOR}
    if others:
        largest = max(others, key=lambda group: others[group])
        reason += f"; next to it stands {largest} with {share(others[largest])}"
    if own is not None and own.blocks_left is not None:
        reason += f"; a step leaves {own.blocks_left:,.0f} blocks that only the collector can free"
    return Finding(DOES_NOT, figures, reason)


def tuples_spread_the_profile(looks: Seen, pair: Pair) -> Finding:
    """Scalene on `baseline` and `tuple`."""
    tops = []
    for engine in LADDER[:2]:
        profile = _find(looks, pair, engine, LineProfile)
        if profile is None or not by_cpu(profile):
            return _missing(looks, pair, "scalene", engine)
        tops.append(by_cpu(profile)[0])
    before, after = tops
    figures = (
        f"the largest line of {LADDER[0]} is {quoted(before.source)} with {share(before.cpu)}, "
        f"of {LADDER[1]} {quoted(after.source)} with {share(after.cpu)}"
    )
    if after.cpu <= before.cpu - MARGIN:
        return Finding(HOLDS, figures)
    same = "the same line leads both" if before.source == after.source else "another line takes the lead"
    native = share(after.native / after.cpu)
    reason = (
        f"{same}, and its share has not gone down by a point; {native} of that line's time is native code, with the "
        "collections that happened on it"
    )
    return Finding(DOES_NOT, figures, reason)


def slots_remove_dictionaries(looks: Seen, pair: Pair) -> Finding:
    """perf on `tuple` and `slots`."""
    finding = _removed(looks, pair, "tuple", "slots", _DICTIONARY, "dict_traverse")
    groups = [
        f"{engine} {share(profile.groups.get(DICTIONARIES, 0.0))}"
        for engine in ("tuple", "slots")
        if (profile := _find(looks, pair, engine, SymbolProfile))
    ]
    figures = (
        "; ".join(filter(None, (finding.figures, f"all of group {DICTIONARIES}: {', '.join(groups)}")))
        if groups
        else ""
    )
    reason = finding.reason
    version = re.match(r"cpython-(\d+)\.(\d+)", pair[0])
    inline = version is not None and (int(version[1]), int(version[2])) >= _INLINE_SINCE
    if finding.verdict == NOT_SEEN and groups and inline:
        reason += ". Attributes lie in the object itself here, so that a Value has no dictionary to walk"
    return Finding(finding.verdict, figures, reason)


def hoisting_removes_functions(looks: Seen, pair: Pair) -> Finding:
    """perf on `slots` and `hoisted`."""
    return _removed(looks, pair, "slots", "hoisted", _FUNCTION, "func_traverse")


def architecture_stays(looks: Seen, pair: Pair) -> Finding:
    """perf on every variant that it saw."""
    found = {engine: profile for engine in LADDER if (profile := _find(looks, pair, engine, SymbolProfile))}
    if BASELINE not in found:
        return _missing(looks, pair, "perf", BASELINE)
    if len(found) == 1:
        return _missing(looks, pair, "perf", LADDER[1])
    sums = {engine: _of_groups(profile, COLLECTOR, EVALUATION) for engine, profile in found.items()}
    figures = ", ".join(
        f"{engine} {share(total)} ({share(_of_groups(found[engine], COLLECTOR))} + "
        f"{share(_of_groups(found[engine], EVALUATION))})"
        for engine, total in sums.items()
    )
    last = list(sums)[-1]
    change = 100 * (sums[last] - sums[BASELINE])
    figures += f": {change:+.0f} points from {BASELINE} to {last}"
    small = [engine for engine, total in sums.items() if total < _largest_other(found[engine])[1]]
    if not small:
        return Finding(HOLDS, figures)
    group, part = _largest_other(found[small[0]])
    return Finding(DOES_NOT, figures, f"in {small[0]} the group {group} is larger, with {share(part)}")


def counting_frees_the_graph(looks: Seen, pair: Pair) -> Finding:
    """The interpreter's own account, of `baseline` and `hoisted`."""
    profiles = {engine: _find(looks, pair, engine, CollectorProfile) for engine in (LADDER[0], LADDER[-1])}
    collected = {}
    for engine, profile in profiles.items():
        if profile is None or not profile.steps:
            return _missing(looks, pair, "collector", engine)
        collected[engine] = sum(one.collected for one in profile.generations) / profile.steps
    (first, before), (last, after) = collected.items()
    shares = {engine: share(profile.share) for engine, profile in profiles.items() if profile}
    figures = (
        f"a step leaves {before:,.0f} objects that only the collector can free in {first}, {after:,.0f} in {last}; "
        f"it takes {shares[first]} of wall time in {first}, {shares[last]} in {last}"
    )
    if before < 1:
        return Finding(NOT_SEEN, figures, f"{first} leaves nothing to the collector")
    if after <= REMAINS * before:
        return Finding(HOLDS, figures)
    return Finding(DOES_NOT, figures, f"{share(after / before)} of it is left")


def generated_python_is_compiled(looks: Seen, pair: Pair) -> Finding:
    """PyPy's own account of generated Python."""
    profiles = looks.by_pair(JitProfile).get(pair, {})
    generated = {engine: profile for engine, profile in profiles.items() if is_generated(engine)}
    if not generated:
        return _missing(looks, pair, "jit", "python-source")
    figures = " ".join(compiled(engine, pair, profiles) for engine in generated)
    refused = [profile for profile in generated.values() if not compiles(profile)]
    if not refused:
        return Finding(HOLDS, figures)
    reasons = []
    for profile in refused:
        if too_long(profile):
            aborts = ", ".join(f"{reason} {count:,}" for reason, count in profile.aborts.items())
            reasons.append(f"{profile.cell.engine} meets the limit of a trace's length ({aborts})")
        else:
            reasons.append(f"of {profile.cell.engine} neither a loop nor a bridge was compiled")
    return Finding(DOES_NOT, figures, "; ".join(reasons))


def _removed(looks: Seen, pair: Pair, before: str, after: str, pattern: re.Pattern[str], what: str) -> Finding:
    profiles = {engine: _find(looks, pair, engine, SymbolProfile) for engine in LADDER}
    shares = {engine: _of_symbols(profile, pattern) for engine, profile in profiles.items() if profile}
    for engine in (before, after):
        if engine not in shares:
            return _missing(looks, pair, "perf", engine)
    figures = f"{_names(profiles[before], pattern) or what}: " + ", ".join(
        f"{engine} {share(part)}" for engine, part in shares.items()
    )
    if shares[before] < LEAST:
        seen = [engine for engine, part in shares.items() if part >= LEAST]
        where = f"none in {before}, only in {', '.join(seen)}" if seen else "in none of the variants"
        return Finding(NOT_SEEN, figures, f"{what} has no samples to speak of: {where}")
    if shares[after] <= REMAINS * shares[before]:
        return Finding(HOLDS, figures)
    left, seen_after = _names(profiles[after], pattern), profiles[after]
    count = round(shares[after] * seen_after.samples) if seen_after else 0
    kept = share(shares[after] / shares[before])
    return Finding(DOES_NOT, figures, f"{kept} of it is left in {after}, {units.count(count, 'sample')} in {left}")


def _find(looks: Seen, pair: Pair, engine: str, kind: type[Kind]) -> Kind | None:
    return looks.by_pair(kind).get(pair, {}).get(engine)


def _missing(looks: Seen, pair: Pair, profiler: str, engine: str) -> Finding:
    return Finding(NOT_SEEN, reason=looks.why_not(Cell(engine=engine, interpreter=pair[0], workload=pair[1]), profiler))


def _first(lines: list[Line], fits: Callable[[Line], bool]) -> int:
    """Rank of the first line that fits, from 0; -1 where none does."""
    return next((rank for rank, line in enumerate(lines) if fits(line)), -1)


def _ranked(what: str, lines: list[Line], rank: int) -> str:
    return f"{what} has no sample" if rank < 0 else f"{what} is {ordinal(rank + 1)}, {share(lines[rank].cpu)}"


def _plain(symbol: str) -> str:
    """Without what a compiler appends to a copy: `dict_traverse.lto_priv.0`."""
    return symbol.partition(".")[0]


def _of_symbols(profile: SymbolProfile, pattern: re.Pattern[str]) -> float:
    return sum(symbol.share for symbol in profile.symbols if pattern.search(_plain(symbol.name)))


def _names(profile: SymbolProfile | None, pattern: re.Pattern[str]) -> str:
    symbols = profile.symbols if profile else ()
    return ", ".join(dict.fromkeys(_plain(one.name) for one in symbols if pattern.search(_plain(one.name))))


def _of_groups(profile: SymbolProfile, *groups: str) -> float:
    return sum(profile.groups.get(group, 0.0) for group in groups)


def _largest_other(profile: SymbolProfile) -> tuple[str, float]:
    others = {group: part for group, part in profile.groups.items() if group not in (COLLECTOR, EVALUATION)}
    return max(others.items(), key=lambda item: item[1], default=("", 0.0))
