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

from dataclasses import replace
from typing import NamedTuple, Optional

from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.rearrange.weight_reuse import PRODUCT, Pair, pair_of_loops
from zoomgrad.engines.rerolled.recover.loops import Access, Segment
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
from zoomgrad.engines.rerolled.step.spans import reads
from zoomgrad.engines.rerolled.step.step import Step


class Rows(NamedTuple):
    """The data of each row: its inputs, the forward loop's sums and the sink's factors; and the runs over all rows."""

    inputs: Place
    sums: Place
    factors: Place
    forward: Run
    sink: Run


def take_rows_together(step: Step, form: Form) -> Step:
    """Take rows of one batch together, if `lay_out` finds places for them."""
    pair = pair_of_loops(step.loops)
    count = form.rows_together(step.loops.inputs, step.loops.parameters)
    laid_out = lay_out(step, pair, count) if pair else None
    if pair is None or laid_out is None:
        return step
    step, rows = laid_out
    forward = step.loops.loops[pair.forward]
    values, sinks = f"values of {count} rows", f"sinks of {count} rows"
    rest, others = f"values but loop {pair.forward}", f"sinks but loop {pair.sink}"
    step = step.with_routine(values, [rows.forward])
    step = step.with_routine(rest, (run for run in step.routines["values"] if run.number != pair.forward))
    step = step.with_routine(others, (run for run in step.routines["sinks"] if run.number != pair.sink))
    step = step.with_routine(sinks, [rows.sink])

    first: Program = (Perform(values),)
    last: Program = (Perform(sinks),)
    check: Program = ()
    if step.skips:
        live, turned = f"live {values}", f"live {sinks}"
        step = step.with_routine(live, [replace(rows.forward, live_segment=pair.segment)])
        step = step.with_routine(turned, [replace(rows.sink, live_segment=0)])
        listed = pair.inputs[1] - pair.inputs[0]
        step, _ = step.with_area("lists", count * (listed + 1))
        step, _ = step.with_area("turned", listed * (count + 1))
        first = (
            If(Fact.UNBOUNDED, (MeasureWeights(),)),
            ListRows(rows.inputs),
            If(Fact.EVERY_INPUT_OF_ROWS, first, (Perform(live),)),
        )
        last = (If(Fact.EVERY_INPUT_OF_ROWS, last, (TurnLists(), Perform(turned))),)
        check = (CheckFactors(rows.inputs),)

    inputs = Copy(Place(0), rows.inputs, step.loops.inputs)
    (start, stop), x = pair.inputs, rows.inputs
    own_inputs = (
        Copy(Place(0), x, start),
        Copy(Place(stop), Place(x.base + stop, x.per_row), step.loops.inputs - stop),
    )
    turn = step.programs["turn"]
    single = turn[turn.index(TakeRow()) + 1 :]
    gives = [s for s in single if s == Give("outputs")]
    update = next(s for s in walk(single) if isinstance(s, If) and s.condition == Fact.ENDS)
    together: Program = (
        TakeRows(count, rows.inputs),
        *first,
        EachRow(
            (
                *(copy for copy in own_inputs if copy.size),
                Copy(Place(forward.target.base), rows.sums, forward.lanes),
                Perform(rest),
                # Rows before the failed one are fine and still count.
                Guard((KeepEarlier(), *last, inputs, *gives)),
                Perform("gradients"),
                *check,
                Perform(others),
                Copy(rows.factors, Place(pair.factor.base), forward.lanes),
            )
        ),
        EachRow((inputs,), last=True),
        *gives,
        *last,
        If(Fact.ENDS_WITH_ROWS, update.then),
        EndTurn(),
    )
    return step.with_programs(turn=(If(Fact.BATCHED, together), *turn))


def lay_out(step: Step, pair: Pair, count: int) -> Optional[tuple[Step, Rows]]:
    """Places for the rows; None if other loops read these inputs, or if more than the inputs differs between rows."""
    forward, sink = step.loops.loops[pair.forward], step.loops.loops[pair.sink]
    if forward.target.lanes != (1,) or pair.factor.lanes != (1,):
        return None
    for number, loop in enumerate(step.loops.loops):
        if number not in (pair.forward, pair.sink) and reads(loop, pair.inputs):
            return None  # these inputs are not copied for each row
    step, x = step.with_area("rows", count * step.apart(step.loops.inputs))
    step, sums = step.with_area("sums", count * step.apart(forward.room))
    step, factors = step.with_area("factors", count * step.apart(forward.room))
    stride, lanes = step.apart(step.loops.inputs), step.apart(forward.room)
    segments = []
    for index, segment in enumerate(forward.segments):
        operands = []
        for slot, operand in enumerate(segment.operands):
            if not isinstance(operand, Access) or step.loops.area_of(operand.base).name not in "kp":
                if index != pair.segment or slot == pair.slot or not isinstance(operand, Access):
                    return None
                operands.append(Access(x.start + operand.base, (stride, *operand.lanes), operand.terms))
            else:
                operands.append(operand._replace(lanes=(0, *operand.lanes)))
        segments.append(segment._replace(operands=tuple(operands)))
    product = Segment(
        PRODUCT,
        (count,),
        (
            Access(x.start + pair.inputs[0], (1, 0), (stride,)),
            Access(factors.start, (0, 1), (lanes,)),
        ),
    )
    target = Access(sums.start, (lanes, 1))
    of_rows = replace(forward, counts=(count, *forward.counts), target=target, segments=tuple(segments))
    return step, Rows(
        Place(x.start, stride),
        Place(sums.start, lanes),
        Place(factors.start, lanes),
        Run(pair.forward, of_rows, rows=count),
        Run(pair.sink, replace(sink, segments=(product,)), rows=count),
    )
