"""Rows together: several rows of one batch share each load of the first layer's weights, which stay the same.

The forward loop over these weights computes the sums of all rows. Then each row runs the other loops separately, with
its own sums in their usual place. Finally, one sink adds all rows' products to the weights' gradients. Every sum keeps
its order: a lane is one sum of one row, and a gradient adds the rows' terms one after the other.

Both loops are now like a product of two matrices, so the back end runs them in tiles that fit the registers: some rows
by some vectors of sums, or some inputs by some vectors of gradients, which stay in registers while the rows pass by.

Example: three rows, one weight w. The forward loop computes w * x1, w * x2 and w * x3 with one load of w. After each
row has computed its factor f, the sink computes q += x1 * f1; q += x2 * f2; q += x3 * f3 with one load and one store of
q. If row 2 has a loss that is not finite, only `q += x1 * f1` runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.rearrange.weight_reuse import Pair, pair_of_loops
from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Operand, Segment
from zoomgrad.engines.rerolled.step.language import (
    CheckFactors,
    Copy,
    EachRow,
    EndTurn,
    Fact,
    Give,
    Guard,
    If,
    KeepEarlier,
    ListRows,
    MeasureWeights,
    Perform,
    Place,
    Program,
    Run,
    TakeRow,
    TakeRows,
    TurnLists,
    walk,
)
from zoomgrad.engines.rerolled.step.spans import Span, reads
from zoomgrad.engines.rerolled.step.step import Step


class Own(NamedTuple):
    """A span that each of the rows has for itself, and the place of the first row's."""

    span: Span
    place: Place


def take_rows_together(step: Step, form: Form) -> Step:
    """Take rows of one batch together, if only the inputs differ between them in the loops of a pair."""
    pair = pair_of_loops(step.loops)
    if pair is None or not _share_all_else(step, pair):
        return step
    count = form.rows_together(step.loops.inputs, step.loops.parameters)
    forward = step.loops.loops[pair.forward]
    places = []
    for name, size in (("rows", step.loops.inputs), ("sums", forward.room), ("factors", forward.room)):
        step, area = step.with_area(name, count * step.apart(size))
        places.append(Place(area.start, step.apart(size)))
    x, sums, factors = places
    spans = (0, step.loops.inputs), _lanes_from(forward.target, forward), _lanes_from(pair.factor, forward)
    own = list(map(Own, spans, places))
    values, sinks = f"values of {count} rows", f"sinks of {count} rows"
    rest, others = f"values but loop {pair.forward}", f"sinks but loop {pair.sink}"
    of_rows, sum_of_rows = over_rows(pair.forward, forward, own, count), add_rows(pair.sink, step, own, count)
    step = step.with_routine(values, [of_rows])
    step = step.with_routine(rest, (run for run in step.routines["values"] if run.number != pair.forward))
    step = step.with_routine(others, (run for run in step.routines["sinks"] if run.number != pair.sink))
    step = step.with_routine(sinks, [sum_of_rows])

    first: Program = (Perform(values),)
    last: Program = (Perform(sinks),)
    check: Program = ()
    if step.skips:
        live, turned = f"live {values}", f"live {sinks}"
        step = step.with_routine(live, [replace(of_rows, live_segment=pair.segment)])
        step = step.with_routine(turned, [replace(sum_of_rows, live_segment=0)])
        listed = pair.inputs[1] - pair.inputs[0]
        step, _ = step.with_area("lists", count * (listed + 1))
        step, _ = step.with_area("turned", listed * (count + 1))
        first = (
            If(Fact.UNBOUNDED, (MeasureWeights(),)),
            ListRows(x),
            If(Fact.EVERY_INPUT_OF_ROWS, first, (Perform(live),)),
        )
        last = (If(Fact.EVERY_INPUT_OF_ROWS, last, (TurnLists(), Perform(turned))),)
        check = (CheckFactors(x),)

    start, stop = pair.inputs
    own_inputs = (
        Copy(Place(0), x, start),
        Copy(Place(stop), Place(x.base + stop, x.per_row), step.loops.inputs - stop),
    )
    before_guard: Program = (
        *(copy for copy in own_inputs if copy.size),
        Copy(Place(forward.target.base), sums, forward.lanes),
        Perform(rest),
    )
    after_guard: Program = (
        Perform("gradients"),
        *check,
        Perform(others),
        Copy(factors, Place(pair.factor.base), forward.lanes),
    )
    inputs = Copy(Place(0), x, step.loops.inputs)
    each = Each(before_guard, after_guard, restore=(inputs,))
    return with_rows(step, (TakeRows(count, x), *first), each, last, update_of(step))


def _share_all_else(step: Step, pair: Pair) -> bool:
    """Whether only the pair reads its inputs, which are not copied for each row, and the pair reads no values."""
    forward = step.loops.loops[pair.forward]
    others = [loop for number, loop in enumerate(step.loops.loops) if number not in (pair.forward, pair.sink)]
    return (
        forward.target.lanes == pair.factor.lanes == (1,)
        and not any(reads(loop, pair.inputs) for loop in others)
        and all(isinstance(operand, Access) for segment in forward.segments for operand in segment.operands)
        and reads_no_values(step, forward)
    )


def _lanes_from(access: Access, loop: Loop) -> Span:
    return access.base, access.base + loop.lanes


# --- shared with `divided` -------------------------------------------------------------------------------------------


class Each(NamedTuple):
    """What runs for each of the rows taken together."""

    before_guard: Program
    after_guard: Program
    restore: Program
    """What the caller sees of a row: it runs for the last row, or for the one that failed."""


def with_rows(step: Step, compute: Program, each: Each, add: Program, update: Program) -> Step:
    """The step whose turn takes rows together if a batch has several.

    add: adds the gradients of all rows. update: runs at the end of a batch. Rows before a failed one still count.
    """
    turn = step.programs["turn"]
    gives = [s for s in turn[turn.index(TakeRow()) :] if s == Give("outputs")]
    guard = Guard((KeepEarlier(), *add, *each.restore, *gives))
    together: Program = (
        *compute,
        EachRow((*each.before_guard, guard, *each.after_guard)),
        EachRow(each.restore, last=True),
        *gives,
        *add,
        If(Fact.ENDS_WITH_ROWS, update),
        EndTurn(),
    )
    return step.with_programs(turn=(If(Fact.BATCHED, together), *turn))


def update_of(step: Step) -> Program:
    """What the turn runs at the end of a batch."""
    return next(s.then for s in walk(step.programs["turn"]) if isinstance(s, If) and s.condition == Fact.ENDS)


def reads_no_values(step: Step, loop: Loop) -> bool:
    """Whether a loop reads only numbers, inputs and parameters, so that rows differ in their inputs only."""
    return not any(reads(loop, (area.start, area.stop)) for area in map(step.area, "vgu"))


def over_rows(number: int, loop: Loop, own: Sequence[Own], count: int) -> Run:
    """The loop with an outer lane for each row."""

    def widened(operand: Operand) -> Operand:
        first, stride = moved(operand, own)
        return first._replace(lanes=(stride, *first.lanes)) if isinstance(first, Access) else first

    segments = tuple(s._replace(operands=tuple(map(widened, s.operands))) for s in loop.segments)
    target = widened(loop.target)
    assert isinstance(target, Access)
    return Run(number, replace(loop, counts=(count, *loop.counts), target=target, segments=segments), rows=count)


def add_rows(number: int, step: Step, own: Sequence[Own], count: int) -> Run:
    """The sink of that number with a term for each row, and two lane counts."""
    loop = step.loops.loops[number]
    missing = 2 - len(loop.counts)

    def widened(access: Access, terms: tuple[int, ...], last: int = 0) -> Access:
        return Access(access.base, (*[0] * missing, *access.lanes)[:2] if loop.counts else (0, last), terms)

    (segment,) = loop.segments
    operands = []
    for operand in segment.operands:
        first, stride = moved(operand, own)
        operands.append(widened(first, (stride,)) if isinstance(first, Access) else first)
    counts, target = (*[1] * missing, *loop.counts), widened(loop.target, (), 1)
    segments = (Segment(segment.template, (count,), tuple(operands)),)
    return Run(number, replace(loop, counts=counts, target=target, segments=segments), rows=count)


def moved(operand: Operand, own: Sequence[Own]) -> tuple[Operand, int]:
    """An operand of the first of the rows, and its stride from row to row, which is 0 for what all rows share."""
    if isinstance(operand, Access):
        for (start, stop), place in own:
            if start <= operand.base < stop:
                return operand._replace(base=place.base + operand.base - start), place.per_row
    return operand, 0
