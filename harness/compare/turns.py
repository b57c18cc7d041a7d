"""Schema of a comparison in turns: its plan, its blocks, and why a cell has none; and all of them -> verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from zoomgrad.results import compare, units
from zoomgrad.results.compare import COMPILE_TIME, RESULT, STEP, Verdict
from zoomgrad.results.fields import Blocks, Count, Moment, Name, OneLine, Seconds, StepSeconds, Text
from zoomgrad.results.record import Cell, Model
from zoomgrad.results.samples import TICK_SECONDS

COMPILE_WITHIN = 0.05
"""Difference of compile times that does not matter. Compilers start processes and write files, whose times vary more
than a step's."""

FIGURES = (STEP, COMPILE_TIME)


class Side(Model):
    """Figures of one process of a block."""

    step_seconds: Annotated[tuple[StepSeconds, ...], Field(min_length=1)]
    """Seconds per step of each value. The n-th value of the other side was taken just before or after the n-th."""
    processor_seconds: tuple[Seconds, ...] = ()
    """The processor's seconds per step of each value, over all threads."""
    waits: Count = 0
    """How often the process gave up its processor during all values, to wait for a thread or a file."""
    compile_seconds: Annotated[tuple[Seconds, ...], Field(min_length=1)] = (0.0,)
    """Sum of the phases of each preparation."""
    bits: OneLine
    """Digest of the losses and parameters after training."""

    @property
    def is_busy(self) -> bool:
        """Whether it kept one processor busy, so that only other processes can have interrupted it."""
        pairs = [*zip(self.step_seconds, self.processor_seconds, strict=False)]
        return not self.waits and len(pairs) == len(self.step_seconds) and all(0 < b <= 1.02 * a for a, b in pairs)

    def seconds(self, figure: str) -> float:
        """The figure, as the median over values or preparations."""
        return median(self.compile_seconds if figure == COMPILE_TIME else self.step_seconds)


class Block(Model):
    """One block of one cell: a process of each side, which took turns."""

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

    def log_ratio(self, figure: str) -> float | None:
        """Logarithm of the head's time over the base's; None if either compiles nothing.

        Values that were taken in the same turn are compared, so that only what lasts shorter than a turn disturbs. The
        processor's seconds are compared if neither side waited for anything, because a process that waits for the
        processor is not slow. Otherwise they would leave out what a thread or a file costs. Each pair of layouts has
        one vote, the median of its turns.
        """
        if figure == COMPILE_TIME:
            base, head = self.base.seconds(figure), self.head.seconds(figure)
            return math.log(head / base) if min(base, head) > TICK_SECONDS else None
        if self.base.is_busy and self.head.is_busy:
            pairs = zip(self.base.processor_seconds, self.head.processor_seconds, strict=True)
        else:
            pairs = zip(self.base.step_seconds, self.head.step_seconds, strict=True)
        logs = [math.log(head / base) for base, head in pairs]
        return fmean(median(logs[start :: self.layouts]) for start in range(min(self.layouts, len(logs))))


class Absence(Model):
    """Why a cell has no figures. It is left out from then on."""

    cell: Cell
    side: Literal["base", "head", "both", ""] = ""
    """Empty if it is not known: a block reached a limit, or its figures are out of range."""
    reason: Text


Outcome = Block | Absence


class Subject(Model):
    """One side: a commit, or an interpreter of this checkout, as the user named it."""

    name: Text
    sha: OneLine = ""
    """Empty for an interpreter."""

    def __str__(self) -> str:
        return f"{self.name} ({self.sha[:12]})" if self.sha else self.name


class Plan(Model):
    """The plan of a comparison: two sides, the cells, and when to stop."""

    id: Name
    created_at: Moment
    command: tuple[Text, ...]
    base: Subject
    head: Subject
    cells: Annotated[tuple[Cell, ...], Field(min_length=1)]
    """If interpreters are compared, their cells name the base's."""
    strict: tuple[Name, ...] = ()
    """Engines that promise identical bits."""
    within: Annotated[float, Field(gt=0.0, lt=1.0)]
    """A cell counts as the same if its ratio is certainly within this share of 1."""
    budget_seconds: Seconds
    seed: Count
    machine: dict[OneLine, OneLine] = Field(default_factory=dict)

    @property
    def family(self) -> int:
        """Number of statements that the comparison can make, which share its probability of an error."""
        return len(FIGURES) * len(self.cells)

    def subject(self, cell: Cell) -> str:
        """Key of a cell, without the interpreter if interpreters are compared."""
        return cell.key if self.base.sha else f"{cell.engine}/{cell.workload}"


def verdicts(plan: Plan, outcomes: Iterable[Outcome]) -> list[Verdict]:
    """Return what the blocks show of the result of each cell, and of its figures."""
    blocks: dict[Cell, list[Block]] = {cell: [] for cell in plan.cells}
    absences: dict[Cell, Absence] = {}
    for one in outcomes:
        if isinstance(one, Block):
            blocks[one.cell].append(one)
        else:
            absences[one.cell] = one
    broken = [
        Verdict(
            plan.subject(cell),
            RESULT,
            "lost" if one.side in ("head", "") else "unsure",
            reason=f"no result{f' on {one.side}' if one.side else ''}: {one.reason}",
        )
        for cell, one in absences.items()
    ]
    broken += [
        Verdict(plan.subject(cell), RESULT, "wrong", reason="both sides compute different losses or parameters")
        for cell, of_cell in blocks.items()
        if cell.engine in plan.strict and any(block.base.bits != block.head.bits for block in of_cell)
    ]
    compared = (
        _compared(plan, figure, cell, blocks[cell]) for figure in FIGURES for cell in plan.cells if cell not in absences
    )
    return [*broken, *filter(None, compared)]


def _compared(plan: Plan, figure: str, cell: Cell, blocks: Sequence[Block]) -> Verdict | None:
    """The verdict on one figure of a cell; None if no block has it."""
    logs = [log for block in blocks if (log := block.log_ratio(figure)) is not None]
    if not logs:
        return None
    within = plan.within if figure == STEP else max(plan.within, COMPILE_WITHIN)
    word, ratio = compare.in_turns(logs, within, compare.ERROR / plan.family)
    return Verdict(
        plan.subject(cell),
        figure,
        word,
        ratio,
        then=median(block.base.seconds(figure) for block in blocks),
        now=median(block.head.seconds(figure) for block in blocks),
        limit=within,
        reason=units.count(len(logs), "block") if word == "unsure" else "",
        cell=cell,
    )


def undecided(found: Iterable[Verdict]) -> list[Cell]:
    """Cells that need more blocks."""
    return list(dict.fromkeys(one.cell for one in found if one.cell and one.word == "unsure"))
