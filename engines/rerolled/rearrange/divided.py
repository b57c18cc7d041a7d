"""Divide batches among threads: passes by rows, gradients and updates by lanes. Every sum keeps its order.

A batch's rows do not depend on one another while the parameters stay the same. So each of the rows taken together has
places of its own (see `rows`), and each thread computes some of the rows. Then the threads meet, and the losses are
recorded in order. Next, each thread computes some of the gradients: it adds the products of all rows, row by row. At a
batch's end, each thread updates some of the parameters. One thread computes a sum from its first term to its last, so
the bits are the same for any number of threads. Batches of one row are not divided.

Example: three rows and two threads. One thread computes the losses and factors of row 0, the other those of rows 1 and
2. If row 1 has a loss that is not finite, only row 0 counts. Then the first thread adds x[0] * f of each row to the
first half of q, and the other adds x[1] * f of each row to the second half.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.rearrange.rows import (
    add_rows,
    can_add_rows,
    of_first_row,
    over_rows,
    own_size,
    with_own,
    with_rows,
)
from zoomgrad.engines.rerolled.rearrange.together import has_form, take_rows_together
from zoomgrad.engines.rerolled.rearrange.weight_reuse import pair_of_loops
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import Program, Statement
from zoomgrad.engines.rerolled.step.step import Step

MOST_BYTES = 32 << 20
"""The most memory for the rows' own places."""
LEAST_WORK = 2_000_000
"""Primitives of the rows taken together, from which on they are divided: some 200 microseconds on one thread. An empty
division takes one, if each thread has a core for itself, but a millisecond while other processes use the cores."""


def divide(step: Step, form: Form) -> Step:
    """Divide batches among threads; take rows together on one thread if they are too short or have no form for that."""
    divided = _divided(step, form)
    return take_rows_together(step, form) if divided is None else divided


def _divided(step: Step, form: Form) -> Optional[Step]:
    pair, sinks = pair_of_loops(step.loops), step.routines["sinks"]
    count = _row_count(step, form)
    work = count * sum(loop.work for loop in step.loops.loops)
    if pair is None or step.skips or count < 2 or work < LEAST_WORK or not has_form(step, pair):
        return None
    if not all(can_add_rows(run.loop) for run in sinks):
        return None
    step = with_own(step, count)
    values, rest, added_up = f"values of {count} rows", f"values but loop {pair.forward}", f"sinks of {count} rows"
    others = (run for run in step.routines["values"] if run.number != pair.forward)
    of_sinks = (replace(add_rows(step, run.number, count), is_part=True) for run in sinks)
    step = step.with_routine(values, [replace(over_rows(step, pair.forward, count), is_part=True)])
    step = step.with_routine(rest, others).with_routine(added_up, of_sinks)
    compute = (
        steps.TakeRows(count, of_first_row(step, step.area("x").start)),
        steps.Perform(values),
        steps.EachRow((steps.Perform(rest), steps.Perform("gradients"))),
    )
    rows = (steps.Divided("rows", compute), steps.EachRow((steps.Guard(),)))
    step = with_rows(step, rows, (steps.Divided("lanes", (steps.Perform(added_up),)),))
    return step.with_programs(together=steps.rewrite(step.programs["together"], _in_parts))


def _in_parts(statement: Statement) -> Program:
    return (steps.Divided("lanes", (statement,)),) if isinstance(statement, steps.Update) else (statement,)


def _row_count(step: Step, form: Form) -> int:
    """Rows to take together: for each thread, as many as one thread alone would take."""
    if form.rows is not None:
        return form.rows
    wanted = form.threads * form.rows_together(step.loops.inputs, step.loops.parameters)
    return min(wanted, MOST_BYTES // (8 * own_size(step)))
