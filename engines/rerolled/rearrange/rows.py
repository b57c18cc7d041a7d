"""Rows of a batch in one turn of the step: loops that run over all of them, and the turn that takes them.

`together` and `divided` use these functions. Each row has a copy of some spans of the workspace.

Example: `v[i] = p[i] + x[i]` for i<4, if each row has x[0] to x[3] for itself at rows[8*row], and v[0] to v[3] at
kept[8*row]. For all rows it is `kept[i + 8*row] = p[i] + rows[i + 8*row]`, with an outer lane for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from zoomgrad.engines.rerolled.form import has_strides, with_a_lane
from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Operand, Segment
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import Fact, Place, Program, Run, walk
from zoomgrad.engines.rerolled.step.spans import Span, reads
from zoomgrad.engines.rerolled.step.step import Step


class Own(NamedTuple):
    """A span of which each row has a copy, and the place of the first row's copy."""

    span: Span
    place: Place


def with_rows(
    step: Step, *, compute: Program, before_guard: Program, after_guard: Program, add: Program, restore: Program
) -> Step:
    """The step that takes rows together if a batch has several.

    compute: for all rows. before_guard, after_guard: for each row. add: adds the gradients of all rows; those before a
    failed one still count. restore: what the caller sees of a row, for the last row, or for the one that failed.
    """
    turn = step.programs["turn"]
    gives = [s for s in turn[turn.index(steps.TakeRow()) :] if s == steps.Give("outputs")]
    guard = steps.Guard((*add, *restore, *gives))
    update = next(s.then for s in walk(turn) if isinstance(s, steps.If) and s.condition == Fact.ENDS)
    return step.with_programs(
        together=(
            *compute,
            steps.EachRow((*before_guard, guard, *after_guard)),
            steps.EachRow(restore, last=True),
            *gives,
            *add,
            steps.If(Fact.ENDS_WITH_ROWS, update),
        )
    )


def reads_no_values(step: Step, loop: Loop) -> bool:
    """Whether a loop reads only numbers, inputs and parameters, so that rows differ in their inputs only."""
    return not any(reads(loop, (area.start, area.stop)) for area in map(step.area, "vgu"))


def over_rows(number: int, loop: Loop, own: Sequence[Own], count: int) -> Run:
    """The loop of that number with an outer lane for each row."""

    def widened(operand: Operand) -> Operand:
        first, stride = _moved(operand, own)
        return first._replace(lanes=(stride, *first.lanes)) if isinstance(first, Access) else first

    segments = tuple(s._replace(operands=tuple(map(widened, s.operands))) for s in loop.segments)
    target = widened(loop.target)
    assert isinstance(target, Access)
    return Run(number, replace(loop, counts=(count, *loop.counts), target=target, segments=segments), rows=count)


def adds_rows(sink: Loop) -> bool:
    """Whether tiles can add a sink's terms row by row: the sink has no inner sum, and at most two lane counts."""
    return has_strides(sink) and len(sink.segments) == 1 and not sink.segments[0].counts and len(sink.counts) <= 2


def add_rows(number: int, loop: Loop, own: Sequence[Own], count: int) -> Run:
    """The sink of that number with a term for each row, and two lane counts."""
    loop = loop if loop.counts else with_a_lane(loop)
    missing = 2 - len(loop.counts)

    def widened(access: Access, terms: tuple[int, ...]) -> Access:
        return Access(access.base, (*[0] * missing, *access.lanes), terms)

    (segment,) = loop.segments
    operands = []
    for operand in segment.operands:
        first, stride = _moved(operand, own)
        operands.append(widened(first, (stride,)) if isinstance(first, Access) else first)
    counts, target = (*[1] * missing, *loop.counts), widened(loop.target, ())
    segments = (Segment(segment.template, (count,), tuple(operands)),)
    return Run(number, replace(loop, counts=counts, target=target, segments=segments), rows=count)


def _moved(operand: Operand, own: Sequence[Own]) -> tuple[Operand, int]:
    """An operand of the first of the rows, and its stride from row to row, which is 0 for what all rows share."""
    if isinstance(operand, Access):
        for (start, stop), place in own:
            if start <= operand.base < stop:
                return operand._replace(base=place.base + operand.base - start), place.per_row
    return operand, 0
