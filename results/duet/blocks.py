"""Schema of a duet: its plan, its blocks, cells without figures, counted instructions.

`zoomgrad ab` writes them to `blocks.jsonl`, one line each, as soon as they are known.
"""

from __future__ import annotations

import math
from collections import Counter
from statistics import fmean, median
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from results.fields import Blocks, Count, Moment, Name, OneLine, Seconds, StepSeconds, Text
from results.record import Cell, Model
from results.samples import TICK_SECONDS

ERROR = 0.01
"""Probability that a whole duet of equal commits calls anything faster or slower: one run in a hundred."""

Figure = Literal["step", "compile"]
FIGURES: tuple[Figure, ...] = ("step", "compile")


class Side(Model):
    """Figures of one process of a block."""

    step_seconds: Annotated[tuple[StepSeconds, ...], Field(min_length=1)]
    """Seconds per step of each value. The n-th value of the other side was taken just before or after the n-th."""
    processor_seconds: tuple[Seconds, ...] = ()
    """The processor's seconds per step of each value, over all threads."""
    waits: Count = 0
    """How often the process gave up its processor during all values, to wait for a thread or a file."""
    compile_seconds: tuple[Seconds, ...] = ()
    """Sum of the phases of each preparation."""
    bits: OneLine
    """Digest of the losses and parameters after training."""
    layout: dict[OneLine, OneLine] = Field(default_factory=dict)

    @property
    def is_busy(self) -> bool:
        """Whether it kept one processor busy, so that only other processes can have interrupted it."""
        pairs = [*zip(self.step_seconds, self.processor_seconds, strict=False)]
        return not self.waits and len(pairs) == len(self.step_seconds) and all(0 < b <= 1.02 * a for a, b in pairs)


class Block(Model):
    """One block of one cell: a process of each commit, which took turns."""

    cell: Cell
    block: Blocks
    started_at: Moment
    seconds: Seconds
    steps: Count
    layouts: Annotated[int, Field(ge=1, le=1000)] = 1
    """Layouts of each side's program, which its values used in turns: value n had layout n % layouts."""
    base: Side
    head: Side

    @model_validator(mode="after")
    def _refuse_values_without_a_partner(self) -> Self:
        here, there = len(self.base.step_seconds), len(self.head.step_seconds)
        if here != there:
            raise ValueError(f"{here} values of base and {there} of head can't be compared in pairs")
        return self

    def log_ratio(self, figure: Figure) -> float | None:
        """Logarithm of HEAD's time over BASE's; None if either compiles nothing.

        Values that were taken in the same turn are compared, so that only what lasts shorter than a turn disturbs. The
        processor's seconds are compared if neither side waited for anything, because a process that waits for the
        processor is not slow. Otherwise they would leave out what a thread or a file costs. Each pair of layouts has
        one vote, the median of its turns.
        """
        if figure == "compile":
            base, head = (median(side.compile_seconds or (0.0,)) for side in (self.base, self.head))
            return math.log(head / base) if min(base, head) > TICK_SECONDS else None
        if self.base.is_busy and self.head.is_busy:
            pairs = zip(self.base.processor_seconds, self.head.processor_seconds, strict=True)
        else:
            pairs = zip(self.base.step_seconds, self.head.step_seconds, strict=True)
        logs = [math.log(head / base) for base, head in pairs]
        return fmean(median(logs[start :: self.layouts]) for start in range(min(self.layouts, len(logs))))


class Commit(Model):
    """A commit, as the user named it."""

    name: Text
    sha: OneLine


class Absence(Model):
    """Why a cell has no figures."""

    cell: Cell
    side: Literal["base", "head", "both", ""] = ""
    """Empty if it is not known: a block reached a limit, or its figures are out of range."""
    reason: Text


class Counts(Model):
    """Instructions of a step on each side, or the reason why they were not counted."""

    cell: Cell
    tool: OneLine = ""
    base: Annotated[float, Field(gt=0.0)] = 1.0
    head: Annotated[float, Field(gt=0.0)] = 1.0
    reason: Text = ""
    seconds: Seconds = 0.0
    """How long counting took."""


class Duet(Model):
    """The plan of a duet: two commits, the cells, and when to stop."""

    schema_version: Literal[1] = 1
    id: Name
    created_at: Moment
    command: tuple[Text, ...]
    base: Commit
    head: Commit
    cells: Annotated[tuple[Cell, ...], Field(min_length=1)]
    figures: Annotated[tuple[Figure, ...], Field(min_length=1)] = FIGURES
    within: Annotated[float, Field(gt=0.0, lt=1.0)]
    """A cell counts as the same if its ratio is certainly within this share of 1."""
    budget_seconds: Seconds
    error: Annotated[float, Field(gt=0.0, lt=1.0)] = ERROR
    seed: Count
    instructions: bool = True
    """Whether the instructions of a step are counted."""
    python: dict[Name, OneLine] = Field(default_factory=dict)
    """Interpreter -> its version, as it prints it."""
    machine: dict[OneLine, OneLine] = Field(default_factory=dict)


class Result(Model):
    """A duet and everything that it measured."""

    duet: Duet
    blocks: tuple[Block, ...] = ()
    absences: tuple[Absence, ...] = ()
    counts: tuple[Counts, ...] = ()

    @model_validator(mode="after")
    def _refuse_strangers(self) -> Self:
        """Each cell is one of the plan's, and has each block once: a block that counts twice would be a false proof."""
        named = [one.cell for kind in (self.blocks, self.absences, self.counts) for one in kind]
        for cell in named:
            if cell not in self.duet.cells:
                raise ValueError(f"{cell.key} is not a cell of this duet")
        numbers = Counter((block.cell, block.block) for block in self.blocks)
        for (cell, number), times in numbers.items():
            if times > 1:
                raise ValueError(f"block {number} of {cell.key} is there {times} times")
        return self

    @property
    def spent_seconds(self) -> float:
        """Time that the blocks and counting took."""
        return sum(block.seconds for block in self.blocks) + sum(count.seconds for count in self.counts)
