"""Two sets of blocks -> the ratio of their times, its interval and a verdict.

A ratio is the new time over the old one, so more than 1 is slower. There are two kinds of sets:

- `between_runs`: two runs, perhaps of different machines. Each brings an engine's samples and those of its baseline.
- `turns.verdict`: in each block, two processes took turns, so the block has one ratio. Any number of looks is allowed.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Literal, get_args

from pydantic import Field

from zoomgrad.results.record import Cell, Model
from zoomgrad.results.stats import intervals
from zoomgrad.results.stats.intervals import Interval

ERROR = 0.01
"""Probability that a whole comparison of equal code calls anything slower or faster."""

NAN = float("nan")
UNKNOWN = Interval(NAN, NAN, NAN)

Word = Literal["wrong", "weaker", "lost", "slower", "unsure", "same", "faster", "new"]
"""Worst first, which is the order of a table."""
WORDS: tuple[Word, ...] = get_args(Word)
FAILING: tuple[Word, ...] = ("wrong", "weaker", "lost", "slower")

STEP, SPEEDUP, COMPILE_TIME, RESULT = "step", "speedup", "compile time", "result"
"""The figures of verdicts."""

Growth = Annotated[float, Field(ge=1e-6, le=100.0)]
"""A share of 0 would allow nothing."""


class Limits(Model):
    """Limits on regressions, as shares: 0.10 lets a time grow by a tenth. The table `gate` of a suite changes them."""

    slowdown: Growth = 0.10
    compile_growth: Growth = 0.50
    elsewhere: Annotated[float, Field(ge=1.0)] = 5.0
    """Factor on `slowdown` and `compile_growth` if the baseline run is another machine's: processors differ."""
    reruns: Annotated[int, Field(ge=0, le=10, strict=True)] = 3
    """How often suspects are measured again before they fail the gate, each time with twice the blocks."""


Sides = tuple[intervals.Samples, intervals.Samples]
"""The baseline's and the engine's samples of one run, from the blocks that have both."""


@dataclass(frozen=True)
class Verdict:
    """How one figure of a cell differs between two sides, or whether the cell still has a result."""

    subject: str
    """A cell's key, or `geometric mean of 4 cells`."""
    figure: str
    word: Word
    ratio: Interval = UNKNOWN
    _: KW_ONLY
    then: float = NAN
    now: float = NAN
    """The figure itself on both sides: a speedup, a time in seconds or in baseline steps."""
    limit: float = NAN
    """How much longer it may take: 0.10 is a tenth."""
    unit: str = ""
    """Unit of the figure, if it is not the usual one."""
    reason: str = ""
    cell: Cell | None = None

    @property
    def fails(self) -> bool:
        return self.word in FAILING


def word_of(ratio: Interval, within: float, tolerated: float = 0.0) -> Word:
    """Return the verdict on a ratio. A NaN bound compares as false, so a ratio without an interval is unsure.

    within: difference that does not matter, even if it is certain. tolerated: slowdown that does not count as slower.
    """
    if 1 / (1 + within) <= ratio.low and ratio.high <= 1 + within:
        return "same"
    if ratio.low > 1 + tolerated:
        return "slower"
    return "faster" if ratio.high < 1 / (1 + tolerated) else "unsure"


def between_runs(new: Sides, old: Sides, within: float, tolerated: float, error: float) -> tuple[Word, Interval, str]:
    """Verdict on the change of an engine's time over its baseline's, the 95 % interval, and why there is none.

    A wider interval must exclude 1 too. error: probability that this one leaves out the truth.
    """
    if not new[0] or not old[0]:
        return "unsure", UNKNOWN, "no block measured both sides"
    try:
        ratio = intervals.speedup_change(*old, *new)
    except intervals.TooFewProcesses as few:
        value = intervals.ratio_of_blocks(*old) / intervals.ratio_of_blocks(*new)
        return "unsure", Interval(value, NAN, NAN), str(few)
    word = word_of(ratio, within, tolerated)
    if word in ("slower", "faster"):
        certain = intervals.speedup_change(*old, *new, error)
        if certain.low <= 1 <= certain.high:
            word = "unsure"
    return word, ratio, ""
