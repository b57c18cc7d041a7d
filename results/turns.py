"""Blocks of two processes that took turns -> a verdict on one figure. `harness.compare` runs them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import Annotated

from pydantic import Field

from zoomgrad.results import units
from zoomgrad.results.compare import COMPILE_TIME, Verdict, word_of
from zoomgrad.results.fields import Count, OneLine, Seconds, StepSeconds
from zoomgrad.results.record import Cell, Model
from zoomgrad.results.samples import TICK_SECONDS
from zoomgrad.results.stats import sequential
from zoomgrad.results.stats.intervals import Interval


class Figures(Model):
    """Figures of one process of a block."""

    step_seconds: Annotated[tuple[StepSeconds, ...], Field(min_length=1)]
    """Seconds per step of each value. The n-th value of the other side was taken just before or after the n-th."""
    compile_seconds: Annotated[tuple[Seconds, ...], Field(min_length=1)] = (0.0,)
    """Sum of the phases of each preparation."""
    bits: OneLine
    """Digest of the losses and parameters after training."""

    def seconds(self, figure: str) -> float:
        """The figure, as the median over values or preparations."""
        return median(self.compile_seconds if figure == COMPILE_TIME else self.step_seconds)


class Block(Model):
    """What one block of one cell showed. An engine may be anybody's code, so its figures are validated."""

    steps: Count
    layouts: Annotated[int, Field(ge=1, le=1000)] = 1
    """Layouts of each side's program, which its values used in turns: value n had layout n % layouts."""
    base: Figures
    head: Figures

    def log_ratio(self, figure: str) -> float | None:
        """Logarithm of the head's time over the base's; None if either compiles nothing.

        Values that were taken in the same turn are compared, so that only what lasts shorter than a turn disturbs. Each
        pair of layouts has one vote, the median of its turns.
        """
        if figure == COMPILE_TIME:
            base, head = self.base.seconds(figure), self.head.seconds(figure)
            return math.log(head / base) if min(base, head) > TICK_SECONDS else None
        pairs = zip(self.base.step_seconds, self.head.step_seconds, strict=True)
        logs = [math.log(head / base) for base, head in pairs]
        return fmean(median(logs[start :: self.layouts]) for start in range(min(self.layouts, len(logs))))


def verdict(
    blocks: Sequence[Block], figure: str, cell: Cell, subject: str, *, within: float, error: float
) -> Verdict | None:
    """Verdict on the median of the blocks' ratios; None if no block has the figure.

    subject: name of the cell in the verdict. within: difference that does not matter.
    error: probability that the interval ever leaves out the truth, however often the caller looks.
    """
    logs = [log for block in blocks if (log := block.log_ratio(figure)) is not None]
    if not logs:
        return None
    low, high = sequential.bounds(logs, error)  # 0 and infinity until there are enough blocks
    ratio = Interval(math.exp(median(logs)), math.exp(low), math.exp(high))
    word = word_of(ratio, within)
    return Verdict(
        subject,
        figure,
        word,
        ratio,
        then=median(block.base.seconds(figure) for block in blocks),
        now=median(block.head.seconds(figure) for block in blocks),
        limit=within,
        reason=units.count(len(logs), "block") if word == "unsure" else "",
        cell=cell,
    )
