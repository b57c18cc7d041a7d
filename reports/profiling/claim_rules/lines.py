"""Rules about Scalene's line profiles."""

from __future__ import annotations

import re
from collections.abc import Callable

from reports.profiling.claim_rules.finding import DOES_NOT, HOLDS, LADDER, MARGIN, NOT_SEEN, Finding, find, missing
from reports.profiling.hottest import HOTTEST, by_allocation, by_cpu, ordinal, place, quoted
from reports.profiling.profile_index import Pair, ProfileIndex
from reports.text.figures import share
from results.profile import Line, LineProfile
from results.record import BASELINE

_CREATION = re.compile(r"(?<!class )\bValue\(|^self\.\w+(: \w+)? = |^def __init__")
_CHILDREN = re.compile(r"_prev\b.*\bset\(")
_ADDITION, _MULTIPLICATION = (re.compile(rf'\bValue\(.*"\{sign}"\)') for sign in "+*")
_ZIP = re.compile(r"\bzip\(self\.w, x\)")


def allocation_is_hottest(index: ProfileIndex, pair: Pair) -> Finding:
    """Scalene on `baseline`: the ranks of the lines that make a Value and the set of children."""
    profile = find(index, pair, BASELINE, LineProfile)
    if profile is None:
        return missing(index, pair, "scalene", BASELINE)
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
            f"{quoted(large[0].source)} allocates the most, {share(large[0].allocated_bytes / total)} of all bytes"
        )
    if 0 in (creation, children) and max(creation, children) < HOTTEST and min(creation, children) >= 0:
        return Finding(HOLDS, "; ".join(figures))
    if creation and children:
        reason = f"the hottest line is a different one: {quoted(hot[0].source)}"
    else:
        cold = "the set of children" if creation == 0 else "making a Value"
        reason = f"{cold} is not among the {HOTTEST} hottest lines"
    return Finding(DOES_NOT, "; ".join(figures), reason)


def adding_and_multiplying_allocate(index: ProfileIndex, pair: Pair) -> Finding:
    """Scalene on `baseline`: the ranks, by allocated bytes, of the lines that make the Values of + and *."""
    profile = find(index, pair, BASELINE, LineProfile)
    if profile is None:
        return missing(index, pair, "scalene", BASELINE)
    large = by_allocation(profile)
    if not large:
        return Finding(NOT_SEEN, reason="Scalene saw no allocation")
    total = sum(line.allocated_bytes for line in large)
    ranks = {
        "+": _first(large, lambda line: bool(_ADDITION.search(line.source))),
        "*": _first(large, lambda line: bool(_MULTIPLICATION.search(line.source))),
    }
    figures = "; ".join(
        f"the Value of a {name} has no allocation"
        if rank < 0
        else f"the Value of a {name} is {ordinal(rank + 1)} of all lines, {share(large[rank].allocated_bytes / total)}"
        for name, rank in ranks.items()
    )
    low = [name for name, rank in ranks.items() if not 0 <= rank < HOTTEST]
    if not low:
        return Finding(HOLDS, figures)
    lines = " and ".join(low)
    return Finding(
        DOES_NOT, figures, f"no line that makes a Value of {lines} is among the {HOTTEST} that allocate most"
    )


def zip_in_the_neuron_is_hot(index: ProfileIndex, pair: Pair) -> Finding:
    """Scalene on `baseline`: the rank of the line with the zip in `Neuron.__call__`."""
    profile = find(index, pair, BASELINE, LineProfile)
    if profile is None:
        return missing(index, pair, "scalene", BASELINE)
    hot = by_cpu(profile)
    if not hot:
        return Finding(NOT_SEEN, reason="Scalene took no sample of CPU time")
    rank = _first(hot, lambda line: bool(_ZIP.search(line.source)))
    figures = _ranked("the line of Neuron.__call__ with its zip", hot, rank)
    if 0 <= rank < HOTTEST:
        return Finding(HOLDS, figures)
    return Finding(DOES_NOT, figures, f"it is not among the {HOTTEST} hottest lines")


def tuples_spread_the_profile(index: ProfileIndex, pair: Pair) -> Finding:
    """Scalene on `baseline` and `tuple`: the shares of their largest lines."""
    tops = []
    for engine in LADDER[:2]:
        profile = find(index, pair, engine, LineProfile)
        if profile is None or not by_cpu(profile):
            return missing(index, pair, "scalene", engine)
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
        f"{same}, and its share has not fallen by a point; {native} of that line's time is native code, including "
        "collections that ran during it"
    )
    return Finding(DOES_NOT, figures, reason)


def _first(lines: list[Line], fits: Callable[[Line], bool]) -> int:
    """Return the rank of the first line that fits, from 0; -1 if none does."""
    return next((rank for rank, line in enumerate(lines) if fits(line)), -1)


def _ranked(what: str, lines: list[Line], rank: int) -> str:
    return f"{what} has no sample" if rank < 0 else f"{what} is {ordinal(rank + 1)}, {share(lines[rank].cpu)}"
