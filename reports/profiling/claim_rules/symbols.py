"""Rules about perf's symbols. They compare symbols with symbols and groups with groups."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reports.profiling.claim_rules.finding import (
    DOES_NOT,
    HOLDS,
    LADDER,
    LEAST,
    NOT_SEEN,
    REMAINS,
    TOLERANCE,
    Finding,
    find,
    missing,
)
from reports.profiling.profile_index import COLLECTOR, DICTIONARIES, EVALUATION, Pair, ProfileIndex
from reports.profiling.published_symbols import (
    COLLECTING,
    COLLECTOR_TOTAL,
    FORMER_NAMES,
    INLINED,
    plain,
    published_share,
)
from reports.text.figures import share
from results import units
from results.profile import CollectorProfile, SymbolProfile
from results.record import BASELINE

_DICTIONARY = re.compile(r"^dict_traverse$|Visit(ManagedDict|InstanceAttributes)$")
_FUNCTION = re.compile(r"^func_traverse$")
_INLINE_SINCE = (3, 11)
"""First CPython that stores attributes in the object until code asks for its dictionary."""


def collecting_function(index: ProfileIndex, pair: Pair) -> Finding:
    """perf on `baseline`: `gc_collect_main` alone."""
    return _of_published_symbols(index, pair, COLLECTING[:1])


def collecting_functions(index: ProfileIndex, pair: Pair) -> Finding:
    """perf on `baseline`: the first three functions of the published table."""
    return _of_published_symbols(index, pair, COLLECTING)


def _of_published_symbols(index: ProfileIndex, pair: Pair, names: Sequence[str]) -> Finding:
    profile = find(index, pair, BASELINE, SymbolProfile)
    if profile is None:
        return missing(index, pair, "perf", BASELINE)
    shares = {name: _of_function(profile, name) for name in COLLECTING}
    absent = [name for name, part in shares.items() if part < LEAST]
    if names[0] in absent:
        reason = f"{names[0]} has too few samples"
        collecting = [one for one in profile.symbols if one.group == COLLECTOR]
        if collecting:
            reason += f"; the collector's largest function is {plain(collecting[0].name)}, {share(collecting[0].share)}"
        return Finding(NOT_SEEN, reason=reason)
    there = [name for name in names if name not in absent]
    total = sum(shares[name] for name in names)
    figures = " + ".join(f"{_name_here(profile, name)} {share(shares[name])}" for name in there)
    if len(there) > 1:
        figures += f" = {share(total)}"
    if absent:
        figures += f"; no samples in {' and '.join(absent)}, which some builds inline into {names[0]}"
    apart = {name: part for name in INLINED if (part := _of_function(profile, name)) >= LEAST}
    if apart and len(names) > 1:
        told = ", ".join(f"{name} {share(part)}" for name, part in apart.items())
        figures += f"; not counted, because the published build had inlined it: {told}"
    return _near(total, sum(map(published_share, names)), figures)


def collector_takes_its_share(index: ProfileIndex, pair: Pair) -> Finding:
    """perf on `baseline`: our group of the collector's symbols, beside the share that the interpreter reports."""
    profile = find(index, pair, BASELINE, SymbolProfile)
    if profile is None:
        return missing(index, pair, "perf", BASELINE)
    found = profile.groups.get(COLLECTOR, 0.0)
    figures = f"{share(found)} of {units.count(profile.samples, 'sample')}"
    own = find(index, pair, BASELINE, CollectorProfile)
    if own is not None:
        figures += f"; the interpreter reports {share(own.share)} of wall time"
    finding = _near(found, COLLECTOR_TOTAL, figures)
    if finding.conclusion == HOLDS:
        return finding
    reason = finding.reason
    others = {group: part for group, part in profile.groups.items() if group != COLLECTOR}
    if others:
        largest = max(others, key=lambda group: others[group])
        reason += f"; the largest other group is {largest} with {share(others[largest])}"
    if own is not None and own.blocks_left is not None:
        reason += f"; a step leaves {own.blocks_left:,.0f} blocks that only the collector can free"
    return Finding(DOES_NOT, figures, reason)


def _near(found: float, published: float, figures: str) -> Finding:
    """Finding that holds if the share is within the tolerance of the published one."""
    if abs(found - published) <= TOLERANCE:
        return Finding(HOLDS, figures)
    more = "more" if found > published else "less"
    return Finding(DOES_NOT, figures, f"{100 * abs(found - published):.0f} points {more} than published")


def slots_remove_dictionaries(index: ProfileIndex, pair: Pair) -> Finding:
    """perf on `tuple` and `slots`: functions that walk attribute dictionaries."""
    finding = _removed(index, pair, "tuple", "slots", _DICTIONARY, "dict_traverse")
    groups = [
        f"{engine} {share(profile.groups.get(DICTIONARIES, 0.0))}"
        for engine in ("tuple", "slots")
        if (profile := find(index, pair, engine, SymbolProfile))
    ]
    figures = (
        "; ".join(filter(None, (finding.figures, f"all of group {DICTIONARIES}: {', '.join(groups)}")))
        if groups
        else ""
    )
    reason = finding.reason
    version = re.match(r"cpython-(\d+)\.(\d+)", pair[0])
    inline = version is not None and (int(version[1]), int(version[2])) >= _INLINE_SINCE
    if finding.conclusion == NOT_SEEN and groups and inline:
        reason += ". This CPython stores attributes in the object itself, so a Value has no dictionary to walk"
    return Finding(finding.conclusion, figures, reason)


def hoisting_removes_functions(index: ProfileIndex, pair: Pair) -> Finding:
    """perf on `slots` and `hoisted`: the function that walks functions."""
    return _removed(index, pair, "slots", "hoisted", _FUNCTION, "func_traverse")


def architecture_stays(index: ProfileIndex, pair: Pair) -> Finding:
    """perf on every variant it saw: the collector and the evaluation loop against the other groups."""
    found = {engine: profile for engine in LADDER if (profile := find(index, pair, engine, SymbolProfile))}
    if BASELINE not in found:
        return missing(index, pair, "perf", BASELINE)
    if len(found) == 1:
        return missing(index, pair, "perf", LADDER[1])
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


def _removed(index: ProfileIndex, pair: Pair, before: str, after: str, pattern: re.Pattern[str], what: str) -> Finding:
    profiles = {engine: find(index, pair, engine, SymbolProfile) for engine in LADDER}
    shares = {engine: _of_symbols(profile, pattern) for engine, profile in profiles.items() if profile}
    for engine in (before, after):
        if engine not in shares:
            return missing(index, pair, "perf", engine)
    figures = f"{_names(profiles[before], pattern) or what}: " + ", ".join(
        f"{engine} {share(part)}" for engine, part in shares.items()
    )
    if shares[before] < LEAST:
        with_samples = [engine for engine, part in shares.items() if part >= LEAST]
        where = f"in {before}, enough only in {', '.join(with_samples)}" if with_samples else "in every variant"
        return Finding(NOT_SEEN, figures, f"{what} has too few samples {where}")
    if shares[after] <= REMAINS * shares[before]:
        return Finding(HOLDS, figures)
    left, seen_after = _names(profiles[after], pattern), profiles[after]
    count = round(shares[after] * seen_after.samples) if seen_after else 0
    kept = share(shares[after] / shares[before])
    return Finding(DOES_NOT, figures, f"{kept} of it is left in {after}, {units.count(count, 'sample')} in {left}")


def _of_function(profile: SymbolProfile, name: str) -> float:
    """Return the share of one function, under any of its names, including the compiler's copies."""
    names = {name, *FORMER_NAMES.get(name, ())}
    return sum(symbol.share for symbol in profile.symbols if plain(symbol.name) in names)


def _name_here(profile: SymbolProfile, name: str) -> str:
    """Return the function's name in this interpreter."""
    here = {plain(symbol.name) for symbol in profile.symbols}
    return next((former for former in FORMER_NAMES.get(name, ()) if former in here and name not in here), name)


def _of_symbols(profile: SymbolProfile, pattern: re.Pattern[str]) -> float:
    return sum(symbol.share for symbol in profile.symbols if pattern.search(plain(symbol.name)))


def _names(profile: SymbolProfile | None, pattern: re.Pattern[str]) -> str:
    symbols = profile.symbols if profile else ()
    return ", ".join(dict.fromkeys(plain(one.name) for one in symbols if pattern.search(plain(one.name))))


def _of_groups(profile: SymbolProfile, *groups: str) -> float:
    return sum(profile.groups.get(group, 0.0) for group in groups)


def _largest_other(profile: SymbolProfile) -> tuple[str, float]:
    others = {group: part for group, part in profile.groups.items() if group not in (COLLECTOR, EVALUATION)}
    return max(others.items(), key=lambda item: item[1], default=("", 0.0))
