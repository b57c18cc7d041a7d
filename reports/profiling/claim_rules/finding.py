"""Shared by all rules: a finding with its conclusion, the search for a profile, and common thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from reports.profiling.profile_index import Pair, ProfileIndex
from results.profile import Profile
from results.record import BASELINE, Cell

LADDER = (BASELINE, "tuple", "slots", "hoisted")
"""The published variants."""
TOLERANCE = 0.05
"""Allowed difference between a published share and ours, because machine and interpreter differ."""
ABOUT = 2.0
"""Factor within which a time or a rate is "about" the published one, because the machine differs."""
MARGIN = 0.01
"""Least difference between two shares for one to count as larger."""
LEAST = 0.002
"""A symbol with a smaller share counts as absent."""
REMAINS = 0.1
"""Fraction of a symbol's previous share; with more left, the symbol was not removed."""

Conclusion = Literal["holds", "does not hold", "not seen", "cannot be tested here"]
HOLDS: Final = "holds"
DOES_NOT: Final = "does not hold"
NOT_SEEN: Final = "not seen"
CANNOT: Final = "cannot be tested here"
"""Only for an interpreter that cannot be installed, so no profiler can run."""

Kind = TypeVar("Kind", bound=Profile)


@dataclass(frozen=True)
class Finding:
    """The conclusion about a claim on one interpreter and workload, with the figures behind it."""

    conclusion: Conclusion
    figures: str = ""
    reason: str = ""
    """Why the claim does not hold, was not seen, or cannot be tested."""


def find(index: ProfileIndex, pair: Pair, engine: str, kind: type[Kind]) -> Kind | None:
    """Return the engine's measured profile of that kind; None if there is none."""
    return index.by_pair(kind).get(pair, {}).get(engine)


def missing(index: ProfileIndex, pair: Pair, profiler: str, engine: str) -> Finding:
    """Finding for an engine without a measured profile, with the reason."""
    return Finding(NOT_SEEN, reason=index.why_not(Cell(engine=engine, interpreter=pair[0], workload=pair[1]), profiler))


def of_skybison(index: ProfileIndex, pair: Pair) -> Finding:
    """Finding for every claim about Skybison: it cannot be tested."""
    return Finding(CANNOT, reason="Skybison is no longer maintained and cannot be installed")
