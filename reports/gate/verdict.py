"""A verdict: how one figure of a cell changed between the baseline run and a new one, in one word."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from results.record import Cell
from results.stats.intervals import Interval

Word = Literal["wrong", "lost", "worse", "unsure", "same", "better", "new"]
"""Worst first, which is the order of a verdict table."""
WORDS: tuple[Word, ...] = get_args(Word)
FAILING: tuple[Word, ...] = ("wrong", "lost", "worse")

SPEEDUP, COMPILE_TIME, INSTRUCTIONS, RESULT = "speedup", "compile time", "instructions", "result"
"""The subjects of verdicts."""

NAN = float("nan")
NO_CHANGE = Interval(NAN, NAN, NAN)
"""The change of a cell without a result."""


@dataclass(frozen=True)
class Verdict:
    """How a cell's speedup, compile time or instruction count changed, or whether it still has a result."""

    cell: Cell
    subject: str
    word: Word
    change: Interval = NO_CHANGE
    """New over old for a speedup, old over new for everything else: below 1 is a loss."""
    then: float = NAN
    """The baseline run's speedup, compile time in baseline steps, or instructions a step."""
    now: float = NAN
    limit: float = NAN
    """The allowed loss: 0.10 lets a time, or a count, grow by a tenth."""
    reason: str = ""

    @property
    def fails(self) -> bool:
        return self.word in FAILING

    def suspect(self, measured_again: bool = False) -> bool:
        """Return whether to measure the cell again before it fails.

        After the first measurement no failure is final, because a bad minute of the machine looks like a regression;
        a cell that looks worse by half its limit is also a suspect. Later, only unsure changes beyond their limit are.
        """
        if self.subject not in (SPEEDUP, COMPILE_TIME):
            return False
        # A cell that compiled in one block only would load its object in any further one and add no compile time.
        if self.subject == COMPILE_TIME and math.isnan(self.change.low):
            return False
        if measured_again:
            return self.word == "unsure" and self.change.value * (1 + self.limit) < 1
        return self.word == "worse" or (self.word == "unsure" and self.change.value * (1 + self.limit / 2) < 1)


def word_of(change: Interval, limit: float) -> Word:
    """Return the word for a change. NaN bounds compare as false, so a change without an interval is unsure."""
    if change.high < 1 / (1 + limit):
        return "worse"
    if change.low > 1 + limit:
        return "better"
    if change.low >= 1 / (1 + limit) and change.high <= 1 + limit:
        return "same"
    return "unsure"
