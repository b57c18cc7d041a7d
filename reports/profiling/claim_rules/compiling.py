"""Rules about what C compilers report: the time of their passes, and the instructions they fused."""

from __future__ import annotations

import re

from reports.profiling.claim_rules.finding import DOES_NOT, HOLDS, NOT_SEEN, Finding, find, missing
from reports.profiling.profile_index import Pair, ProfileIndex
from reports.text.figures import share
from results import units
from results.profile import CompilerProfile

ARRAYS, FUSING = "clang-O1-published", "clang-O1-published-fma"
FEW = 0.5
"""Fraction of the fusable sums; fusing fewer counts as "not often"."""
LONG = 0.25
"""Share of a compiler's time from which a pass counts as slow."""

_SROA = re.compile(r"^SROA", re.IGNORECASE)


def arrays_are_slow_by_sroa(index: ProfileIndex, pair: Pair) -> Finding:
    """Clang's passes on the published form."""
    profile = find(index, pair, ARRAYS, CompilerProfile)
    if profile is None or not profile.passes:
        return missing(index, pair, "compiler", ARRAYS)
    largest = profile.passes[0]
    part = sum(one.share for one in profile.passes if _SROA.search(one.name))
    figures = f"{ARRAYS}: SROA takes {share(part)} of {units.duration(profile.seconds)}"
    if part >= LONG:
        return Finding(HOLDS, figures)
    return Finding(DOES_NOT, figures, f"the largest pass is {largest.name}, with {share(largest.share)}")


def fusing_is_unlikely(index: ProfileIndex, pair: Pair) -> Finding:
    """Compare the sums that Clang could fuse in the published form with those it fuses."""
    profile = find(index, pair, FUSING, CompilerProfile)
    if profile is None:
        return missing(index, pair, "compiler", FUSING)
    forward, backward, taken = profile.fusable_forward, profile.fusable_backward, profile.fused_instructions
    if forward is None or backward is None or taken is None:
        return Finding(NOT_SEEN, reason=profile.fused_reason or "an older profile counted nothing")
    figures = (
        f"{forward:,} sums forward and {backward:,} backward have a product among their operands; the object has "
        f"{units.count(taken, 'multiply-add instruction')}"
    )
    if taken < FEW * (forward + backward):
        return Finding(HOLDS, figures)
    return Finding(DOES_NOT, figures, f"Clang fuses {share(taken / (forward + backward))} of them")
