"""Schema of a comparison in turns, its plan and its blocks; and blocks -> verdicts.

`zoomgrad compare` writes each block to `blocks.jsonl` as soon as it ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from zoomgrad.results import compare
from zoomgrad.results.compare import COMPILE_TIME, RESULT, STEP, Verdict
from zoomgrad.results.fields import Blocks, Count, Moment, Name, OneLine, Seconds, StepSeconds, Text
from zoomgrad.results.record import Cell, Model
from zoomgrad.results.samples import TICK_SECONDS

COMPILE_WITHIN = 0.05
"""Difference of compile times that does not matter. Compilers start processes and write files, whose times vary more
than a step's."""


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

    @property
    def is_busy(self) -> bool:
        """Whether it kept one processor busy, so that only other processes can have interrupted it."""
        pairs = [*zip(self.step_seconds, self.processor_seconds, strict=False)]
        return not self.waits and len(pairs) == len(self.step_seconds) and all(0 < b <= 1.02 * a for a, b in pairs)


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
            base, head = (median(side.compile_seconds or (0.0,)) for side in (self.base, self.head))
            return math.log(head / base) if min(base, head) > TICK_SECONDS else None
        if self.base.is_busy and self.head.is_busy:
            pairs = zip(self.base.processor_seconds, self.head.processor_seconds, strict=True)
        else:
            pairs = zip(self.base.step_seconds, self.head.step_seconds, strict=True)
        logs = [math.log(head / base) for base, head in pairs]
        return fmean(median(logs[start :: self.layouts]) for start in range(min(self.layouts, len(logs))))


class Subject(Model):
    """One side: a commit, or an interpreter of this checkout, as the user named it."""

    name: Text
    sha: OneLine = ""
    """Empty for an interpreter."""


class Absence(Model):
    """Why a cell has no figures."""

    cell: Cell
    side: Literal["base", "head", "both", ""] = ""
    """Empty if it is not known: a block reached a limit, or its figures are out of range."""
    reason: Text


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
    figures: tuple[str, ...] = (STEP, COMPILE_TIME)
    within: Annotated[float, Field(gt=0.0, lt=1.0)]
    """A cell counts as the same if its ratio is certainly within this share of 1."""
    budget_seconds: Seconds
    error: Annotated[float, Field(gt=0.0, lt=1.0)] = compare.ERROR
    seed: Count
    machine: dict[OneLine, OneLine] = Field(default_factory=dict)

    @property
    def family(self) -> int:
        """Number of statements that the comparison can make, which share its probability of an error."""
        return len(self.figures) * (len(self.cells) + (len(self.cells) > 1))

    def within_of(self, figure: str) -> float:
        """Difference of that figure that does not matter, as a share."""
        return self.within if figure == STEP else max(self.within, COMPILE_WITHIN)

    def subject(self, cell: Cell) -> str:
        """Key of a cell, without the interpreter if interpreters are compared."""
        return cell.key if self.base.sha else f"{cell.engine}/{cell.workload}"


def verdicts(plan: Plan, blocks: Iterable[Block], absences: Sequence[Absence] = ()) -> list[Verdict]:
    """Return what the blocks show of each cell and figure, of the figures' geometric means, and of the results."""
    by_cell: dict[Cell, dict[int, Block]] = {cell: {} for cell in plan.cells}
    for block in blocks:
        by_cell[block.cell][block.block] = block
    absent = {absence.cell: absence for absence in absences}
    found = [
        Verdict(
            plan.subject(absence.cell),
            RESULT,
            "lost" if absence.side in ("head", "") else "unsure",
            reason=f"no result{f' on {absence.side}' if absence.side else ''}: {absence.reason}",
        )
        for absence in absences
    ]
    found += [
        Verdict(plan.subject(cell), RESULT, "wrong", reason="both sides compute different losses or parameters")
        for cell, of_cell in by_cell.items()
        if cell.engine in plan.strict and any(block.base.bits != block.head.bits for block in of_cell.values())
    ]
    measured = {cell: of_cell for cell, of_cell in by_cell.items() if of_cell and cell not in absent}
    for figure in plan.figures:
        found += _of_figure(plan, figure, measured)
    return found


def _of_figure(plan: Plan, figure: str, measured: Mapping[Cell, Mapping[int, Block]]) -> Iterable[Verdict]:
    known: dict[Cell, dict[int, float]] = {}
    for cell, blocks in measured.items():
        logs = {number: log for number, block in blocks.items() if (log := block.log_ratio(figure)) is not None}
        if logs:
            known[cell] = logs
            then, now = (
                median(_seconds(getattr(block, side), figure) for block in blocks.values()) for side in ("base", "head")
            )
            yield _verdict(plan, figure, plan.subject(cell), [*logs.values()], then, now, cell)
    common = sorted(set.intersection(*map(set, known.values()))) if len(known) > 1 else ()
    if common:
        means = [fmean(logs[number] for logs in known.values()) for number in common]
        yield _verdict(plan, figure, f"geometric mean of {len(known)} cells", means)


def _verdict(
    plan: Plan,
    figure: str,
    subject: str,
    logs: Sequence[float],
    then: float = compare.NAN,
    now: float = compare.NAN,
    cell: Cell | None = None,
) -> Verdict:
    within = plan.within_of(figure)
    word, ratio = compare.in_turns(logs, within, plan.error / plan.family)
    reason = f"{len(logs)} blocks" if word == "unsure" else ""
    return Verdict(subject, figure, word, ratio, then=then, now=now, limit=within, reason=reason, cell=cell)


def _seconds(side: Side, figure: str) -> float:
    return median((side.compile_seconds or (0.0,)) if figure == COMPILE_TIME else side.step_seconds)


def undecided(found: Iterable[Verdict]) -> list[Cell]:
    """Cells that need more blocks. All of them, if only a mean is not known yet."""
    compared = [one for one in found if one.figure != RESULT]
    cells = [one.cell for one in compared if one.cell and one.word == "unsure"]
    if not cells and any(one.word == "unsure" for one in compared):
        cells = [one.cell for one in compared if one.cell]
    return list(dict.fromkeys(cells))
