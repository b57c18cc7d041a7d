"""Rows together: several rows of one batch share each load of the first layer's weights, which stay the same.

The forward loop over these weights computes the sums of all rows. Then each row runs the other loops separately, with
its own sums in their usual place. Finally, one sink adds all rows' products to the weights' gradients. Every sum keeps
its order: a lane is one sum of one row, and a gradient adds the rows' terms one after the other.

Example: four rows, one weight w. The forward loop computes w * x1 ... w * x4 with one load of w. After each row has
computed its factor f, the sink computes q += x1 * f1; q += x2 * f2; ... with one load and one store of q.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Optional

from engines.rerolled.form import Form
from engines.rerolled.rearrange.weight_reuse import PRODUCT, Pair, pair_of
from engines.rerolled.recover.loops import Access, Segment
from engines.rerolled.step.language import (
    BatchEnds,
    Both,
    Condition,
    Copy,
    EachRow,
    EndTurn,
    EveryInput,
    Fit,
    Give,
    Guard,
    If,
    NoZeros,
    Perform,
    Place,
    Program,
    Run,
    TakeRow,
    TakeRows,
    walk,
)
from engines.rerolled.step.spans import reads
from engines.rerolled.step.step import Step


class Rows(NamedTuple):
    """The data of each row: its inputs, the forward loop's sums and the sink's factors; and the runs over all rows."""

    inputs: Place
    sums: Place
    factors: Place
    forward: Run
    sink: Run


def take_rows_together(step: Step, form: Form) -> Step:
    """Take rows of one batch together, if `lay_out` finds places for them."""
    found, count = pair_of(step), form.rows
    laid_out = lay_out(step, found, count) if found else None
    if found is None or laid_out is None:
        return step
    step, rows = laid_out
    loops = step.loops.loops
    forward = loops[found.forward]
    rest, others, one = f"values but loop {found.forward}", f"sinks but loop {found.sink}", f"sink {found.sink}"
    step = step.with_routine(f"values of {count} rows", [rows.forward])
    step = step.with_routine(rest, (run for run in step.routines["values"] if run.number != found.forward))
    step = step.with_routine(others, (run for run in step.routines["sinks"] if run.number != found.sink))
    step = step.with_routine(one, (run for run in step.routines["sinks"] if run.number == found.sink))
    step = step.with_routine(f"sinks of {count} rows", [rows.sink])

    every_input = Copy(Place(0), rows.inputs, step.loops.inputs)
    (start, stop), x = found.inputs, rows.inputs
    own_inputs = (
        Copy(Place(0), x, start),
        Copy(Place(stop), Place(x.base + stop, x.per_row), step.loops.inputs - stop),
    )
    to_factor = Copy(Place(found.factor.base), rows.factors, forward.lanes)
    turn = step.programs["turn"]
    single = turn[turn.index(TakeRow()) + 1 :]
    gives = [s for s in single if s == Give("outputs")]
    update = next(s for s in walk(single) if isinstance(s, If) and s.condition == BatchEnds())
    last = Place(rows.inputs.base + (count - 1) * rows.inputs.per_row)
    together: Program = (
        Perform(f"values of {count} rows"),
        EachRow(
            count,
            (
                *(copy for copy in own_inputs if copy.size),
                Copy(Place(forward.target.base), rows.sums, forward.lanes),
                Perform(rest),
                # Rows before the failed one are fine and still count.
                Guard((EachRow(count, (every_input, to_factor, Perform(one)), before=True), every_input, *gives)),
                Perform("gradients"),
                Perform(others),
                Copy(rows.factors, Place(found.factor.base), forward.lanes),
            ),
        ),
        Perform(f"sinks of {count} rows"),
        Copy(Place(0), last, step.loops.inputs),
        *gives,
        If(BatchEnds(count), update.then),
        EndTurn(),
    )
    condition: Condition = Fit(count)
    if step.skips:  # a row with zeros is processed alone, because skipping them gains more
        condition = Both(condition, EveryInput())
        together = (If(NoZeros(count, rows.inputs), together),)
    return step.with_programs(turn=(If(condition, (TakeRows(count, rows.inputs), *together)), *turn))


def lay_out(step: Step, found: Pair, count: int) -> Optional[tuple[Step, Rows]]:
    """Places for the rows; None if other loops read these inputs, or if more than the inputs differs between rows."""
    forward, sink = step.loops.loops[found.forward], step.loops.loops[found.sink]
    if forward.target.lanes != (1,) or found.factor.lanes != (1,):
        return None
    for number, loop in enumerate(step.loops.loops):
        if number not in (found.forward, found.sink) and reads(loop, found.inputs):
            return None  # these inputs are not copied for each row
    step, x = step.with_area("rows", count * step.whole_vectors(step.loops.inputs))
    step, sums = step.with_area("sums", count * step.whole_vectors(forward.room))
    step, factors = step.with_area("factors", count * step.whole_vectors(forward.room))
    stride, lanes = step.whole_vectors(step.loops.inputs), step.whole_vectors(forward.room)
    segments = []
    for index, segment in enumerate(forward.segments):
        operands = []
        for slot, operand in enumerate(segment.operands):
            if not isinstance(operand, Access) or step.loops.area_of(operand.base).name not in "kp":
                if index != found.segment or slot == found.slot or not isinstance(operand, Access):
                    return None
                operands.append(Access(x.start + operand.base, (stride, *operand.lanes), operand.terms))
            else:
                operands.append(operand._replace(lanes=(0, *operand.lanes)))
        segments.append(segment._replace(operands=tuple(operands)))
    products = tuple(
        Segment(
            PRODUCT,
            (),
            (Access(x.start + row * stride + found.inputs[0], (1, 0)), Access(factors.start + row * lanes, (0, 1))),
        )
        for row in range(count)
    )
    target = Access(sums.start, (lanes, 1))
    of_rows = replace(forward, counts=(count, *forward.counts), target=target, segments=tuple(segments))
    return step, Rows(
        Place(x.start, stride),
        Place(sums.start, lanes),
        Place(factors.start, lanes),
        Run(found.forward, of_rows, rows=count),
        Run(found.sink, replace(sink, segments=products), rows=count),
    )
