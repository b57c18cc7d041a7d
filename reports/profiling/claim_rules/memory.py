"""Rules about memory over time."""

from __future__ import annotations

from reports.profiling.claim_rules.finding import DOES_NOT, HOLDS, NOT_SEEN, Finding, find, missing
from reports.profiling.profile_index import Pair, ProfileIndex
from reports.text.figures import share
from results import units
from results.profile import MemoryProfile
from results.record import BASELINE

GROWS = 0.1
"""Relative rise of the floor that counts as growth."""
FEWEST_STEPS = 12
"""Three to warm up, and three in each third of the time; with fewer, no third sees a whole tooth of the sawtooth."""


def memory_goes_up(index: ProfileIndex, pair: Pair) -> Finding:
    """Memory over time of `baseline`: the floor decides, because memory always rises between collections."""
    profile = find(index, pair, BASELINE, MemoryProfile)
    if profile is None:
        return missing(index, pair, "memory", BASELINE)
    first, last = profile.floor_bytes(0), profile.floor_bytes(2)
    if profile.steps < FEWEST_STEPS or first is None or last is None:
        return Finding(
            NOT_SEEN, reason=f"{units.count(profile.steps, 'step')} are too few; profile longer with --seconds"
        )
    figures = (
        f"the floor goes from {units.size(first)} in the first third to {units.size(last)} in the last, over "
        f"{units.count(profile.steps, 'step')} in total; the peak is {units.size(profile.peak_bytes)}"
    )
    if last > (1 + GROWS) * first:
        return Finding(HOLDS, figures)
    tooth = share(profile.peak_bytes / last - 1)
    reason = (
        f"the floor changes by {100 * (last / first - 1):+.1f} %: memory rises and falls in the collector's sawtooth, "
        f"up to {tooth} above the floor, which is not a leak"
    )
    return Finding(DOES_NOT, figures, reason)
