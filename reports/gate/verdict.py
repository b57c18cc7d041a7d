"""A verdict: what became of one figure of a cell between the baseline run and a new one, in one word."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from results.record import Cell
from results.stats.intervals import Interval

Word = Literal["wrong", "lost", "worse", "unsure", "same", "better", "new"]
"""From the worst on: the order of a table of verdicts."""
WORDS: tuple[Word, ...] = get_args(Word)
FAILING: tuple[Word, ...] = ("wrong", "lost", "worse")

SPEEDUP, COMPILE_TIME, INSTRUCTIONS, RESULT = "speedup", "compile time", "instructions", "result"
"""What a verdict may be about."""

NAN = float("nan")
NO_CHANGE = Interval(NAN, NAN, NAN)
"""Of a cell without a result."""


@dataclass(frozen=True)
class Verdict:
    """What became of a cell's speedup, of its compile time, of its instructions, or of its result altogether."""

    cell: Cell
    subject: str
    word: Word
    change: Interval = NO_CHANGE
    """Of a speedup new over old, of all else old over new: below 1 is a loss."""
    then: float = NAN
    """The baseline run's speedup, compile time in steps of the baseline, or instructions a step."""
    now: float = NAN
    limit: float = NAN
    """What the figure may lose: 0.10 lets a time, or a count, grow by a tenth."""
    reason: str = ""

    @property
    def fails(self) -> bool:
        return self.word in FAILING

    def suspect(self, measured_again: bool = False) -> bool:
        """Whether to measure the cell again before it fails.

        At first it is enough to look worse by half the limit, and no verdict is final: a bad minute of the machine's
        looks like a regression. After a second measurement only an unsure change beyond its limit is a suspect.
        """
        if self.subject not in (SPEEDUP, COMPILE_TIME):
            return False
        # What compiled in one block only would load its object in others: they have no compile time to add.
        if self.subject == COMPILE_TIME and math.isnan(self.change.low):
            return False
        if measured_again:
            return self.word == "unsure" and self.change.value * (1 + self.limit) < 1
        return self.word == "worse" or (self.word == "unsure" and self.change.value * (1 + self.limit / 2) < 1)


def word_of(change: Interval, limit: float) -> Word:
    """The word for a change. NaN bounds compare as false: without an interval a change is unsure."""
    if change.high < 1 / (1 + limit):
        return "worse"
    if change.low > 1 + limit:
        return "better"
    if change.low >= 1 / (1 + limit) and change.high <= 1 + limit:
        return "same"
    return "unsure"
