"""What every rule uses: a finding and its conclusion, the search for a profile, and the thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from reports.profiling.profile_index import Pair, ProfileIndex
from results.profile import Profile
from results.record import BASELINE, Cell

LADDER = (BASELINE, "tuple", "slots", "hoisted")
"""The published variants."""
TOLERANCE = 0.05
"""Between a published share and ours: it was another machine, another interpreter."""
ABOUT = 2.0
"""Factor within which a time or a rate is "about" the published one: it was another machine."""
MARGIN = 0.01
"""Between two shares below which neither is the larger one."""
LEAST = 0.002
"""A symbol with a smaller share is not there."""
REMAINS = 0.1
"""Of a symbol's share before; with more than that left it was not removed."""

Conclusion = Literal["holds", "does not hold", "not seen", "cannot be tested here"]
HOLDS: Final = "holds"
DOES_NOT: Final = "does not hold"
NOT_SEEN: Final = "not seen"
CANNOT: Final = "cannot be tested here"
"""Only where no profiler can run: on an interpreter that can't be installed."""

Kind = TypeVar("Kind", bound=Profile)


@dataclass(frozen=True)
class Finding:
    """What becomes of a claim on one interpreter and workload."""

    conclusion: Conclusion
    figures: str = ""
    reason: str = ""
    """Why it does not hold, was not seen, or cannot be tested."""


def find(index: ProfileIndex, pair: Pair, engine: str, kind: type[Kind]) -> Kind | None:
    """The measured profile of that kind."""
    return index.by_pair(kind).get(pair, {}).get(engine)


def missing(index: ProfileIndex, pair: Pair, profiler: str, engine: str) -> Finding:
    """Why there is none."""
    return Finding(NOT_SEEN, reason=index.why_not(Cell(engine=engine, interpreter=pair[0], workload=pair[1]), profiler))


def of_skybison(index: ProfileIndex, pair: Pair) -> Finding:
    """Nothing can be said of it."""
    return Finding(CANNOT, reason="Skybison is no longer maintained and cannot be installed")
