"""Symbol profiles -> perf's share of each function, variant by variant, beside the published table."""

from __future__ import annotations

from collections.abc import Mapping

from zoomgrad.reports.profiling.claim_metrics import LADDER
from zoomgrad.reports.profiling.profile_index import EVALUATION, ProfileIndex
from zoomgrad.reports.profiling.published_symbols import CUT, FORMER_NAMES, PUBLISHED, SOURCE, plain, published_share
from zoomgrad.reports.text.figures import Figure, Section, Sheet, share
from zoomgrad.results.profile import SymbolProfile

_CURRENT_NAMES = {former: name for name, names in FORMER_NAMES.items() for former in names}

_LEAD = (
    f"The published profile of baseline ({SOURCE}, mnist) beside this run's samples from perf: the share of each "
    "function of the interpreter, variant by variant. Suffixes that a compiler appends to copies (.lto_priv.0) are "
    f"dropped, and copies are added up. Functions below {100 * CUT:g} % in every column are left out; the published "
    "table is cut there too. A function may be missing because a compiler inlined it into its caller: some builds "
    "inline deduce_unreachable into gc_collect_main, and the published build, which lacks visit_decref, apparently "
    "inlined that."
)


def symbol_ladder(index: ProfileIndex) -> Section | None:
    """One sheet per interpreter and workload for which perf knew the interpreter's functions; None if there is none."""
    sheets = []
    for (interpreter, workload), profiles in index.by_pair(SymbolProfile).items():
        variants = {
            engine: profiles[engine]
            for engine in LADDER
            # Without a symbol for the evaluation loop, as on PyPy, perf knows no function of the runtime.
            if engine in profiles and EVALUATION in profiles[engine].groups
        }
        if variants:
            sheets.append(_sheet(f"{workload} on {interpreter}", variants))
    return Section("symbols", "perf's symbols, beside the published ones", _LEAD, tuple(sheets)) if sheets else None


def by_function(profile: SymbolProfile) -> dict[str, float]:
    """Return shares by function, under its newest name, with copies added up."""
    found: dict[str, float] = {}
    for symbol in profile.symbols:
        name = plain(symbol.name)
        name = _CURRENT_NAMES.get(name, name)
        found[name] = found.get(name, 0.0) + symbol.share
    return found


def _sheet(title: str, variants: Mapping[str, SymbolProfile]) -> Sheet:
    shares = {engine: by_function(profile) for engine, profile in variants.items()}
    names = dict.fromkeys(name for found in shares.values() for name in found)
    largest = {name: max(found.get(name, 0.0) for found in shares.values()) for name in names}
    published = [symbol.name for symbol in PUBLISHED]
    others = sorted(
        (name for name in names if largest[name] >= CUT and name not in published), key=lambda n: -largest[n]
    )
    shown = [*published, *others]
    rows = tuple(
        (
            Figure(name, mark="code"),
            Figure(f"{100 * published_share(name):.2f} %" if name in published else ""),
            *(Figure(share(found[name]) if name in found else "") for found in shares.values()),
        )
        for name in shown
    )
    left_out = ", ".join(
        f"{share(max(0.0, 1 - sum(found.get(name, 0.0) for name in shown)))} of {engine}"
        for engine, found in shares.items()
    )
    headings = ("function", "published, baseline", *variants)
    first, found = next(iter(shares.items()))
    top = f"{title}: {published[0]} takes {share(found.get(published[0], 0.0))} of {first}"
    return Sheet(top, 1, headings, rows, (f"Functions left out add up to {left_out}.",), folded=True)
