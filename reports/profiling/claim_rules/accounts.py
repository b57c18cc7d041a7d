"""Rules about what interpreters report themselves: CPython on its collector, PyPy on its compiler."""

from __future__ import annotations

from reports.profiling.claim_rules.finding import DOES_NOT, HOLDS, LADDER, NOT_SEEN, REMAINS, Finding, find, missing
from reports.profiling.jit import compiled, compiles, is_generated, too_long
from reports.profiling.profile_index import Pair, ProfileIndex
from reports.text.figures import share
from results.profile import CollectorProfile, JitProfile


def counting_frees_the_graph(index: ProfileIndex, pair: Pair) -> Finding:
    """Compare what `baseline` and `hoisted` leave to the collector, as the interpreter reports it."""
    profiles = {engine: find(index, pair, engine, CollectorProfile) for engine in (LADDER[0], LADDER[-1])}
    collected = {}
    for engine, profile in profiles.items():
        if profile is None or not profile.steps:
            return missing(index, pair, "collector", engine)
        collected[engine] = sum(one.collected for one in profile.generations) / profile.steps
    (first, before), (last, after) = collected.items()
    shares = {engine: share(profile.share) for engine, profile in profiles.items() if profile}
    figures = (
        f"a step leaves {before:,.0f} objects that only the collector can free in {first}, {after:,.0f} in {last}; "
        f"the collector takes {shares[first]} of wall time in {first}, {shares[last]} in {last}"
    )
    if before < 1:
        return Finding(NOT_SEEN, figures, f"{first} leaves nothing to the collector")
    if after <= REMAINS * before:
        return Finding(HOLDS, figures)
    return Finding(DOES_NOT, figures, f"{share(after / before)} of them are left")


def generated_python_is_compiled(index: ProfileIndex, pair: Pair) -> Finding:
    """Check PyPy's JIT profiles of the engines that run generated Python."""
    profiles = index.by_pair(JitProfile).get(pair, {})
    generated = {engine: profile for engine, profile in profiles.items() if is_generated(engine)}
    if not generated:
        return missing(index, pair, "jit", "python-source")
    figures = " ".join(compiled(engine, pair, profiles) for engine in generated)
    refused = [profile for profile in generated.values() if not compiles(profile)]
    if not refused:
        return Finding(HOLDS, figures)
    reasons = []
    for profile in refused:
        if too_long(profile):
            aborts = ", ".join(f"{reason} {count:,}" for reason, count in profile.aborts.items())
            reasons.append(f"{profile.cell.engine} reaches the length limit of a trace ({aborts})")
        else:
            reasons.append(f"no loop or bridge of {profile.cell.engine} was compiled")
    return Finding(DOES_NOT, figures, "; ".join(reasons))
