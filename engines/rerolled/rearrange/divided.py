"""Divide batches among threads: passes by rows, gradients and updates by lanes. Every sum keeps its order.

A batch's rows do not depend on one another while the parameters stay the same. So each of the rows taken together has
its own inputs, values and gradients (its *own areas*), and each thread computes some of the rows. Then the threads
meet, and the losses are recorded in order. Next, each thread computes some of the gradients: it adds the products of
all rows, row by row. At a batch's end, each thread updates some of the parameters. One thread computes a sum from its
first term to its last, so the bits are the same for any number of threads. Batches of one row are not divided.

Example: three rows and two threads. One thread computes the losses and factors of row 0, the other those of rows 1 and
2. If row 1 has a loss that is not finite, only row 0 counts. Then the first thread adds x[0] * f of each row to the
first half of q, and the other adds x[1] * f of each row to the second half.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from zoomgrad.engines.rerolled.form import Form, has_strides
from zoomgrad.engines.rerolled.rearrange.rows import Own, add_rows, adds_rows, over_rows, reads_no_values, with_rows
from zoomgrad.engines.rerolled.rearrange.together import take_rows_together
from zoomgrad.engines.rerolled.rearrange.weight_reuse import pair_of_loops
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import Place, Program, Statement
from zoomgrad.engines.rerolled.step.step import Pair, Step

OWN = {"x": "rows", "v": "row_values", "g": "row_gradients", "u": "row_others"}
"""Area -> the area with the same content for each of the rows taken together."""

MOST_BYTES = 32 << 20
"""The most memory for the rows' own areas."""
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
    if pair is None or step.skips or count < 2 or work < LEAST_WORK or not _has_form(step, pair):
        return None
    own = {}
    for name, of_rows in OWN.items():
        area = step.area(name)
        if area.stop > area.start:
            size = step.apart(area.stop - area.start)
            step, added = step.with_area(of_rows, count * size)
            own[name] = Own((area.start, area.stop), Place(added.start, size))
    of_run, all_own = tuple((name, each.place) for name, each in own.items()), list(own.values())
    values, rest, backward = f"values of {count} rows", f"values but loop {pair.forward}", "gradients of a row"
    added_up = f"sinks of {count} rows"
    others = [run for run in step.routines["values"] if run.number != pair.forward]
    first = over_rows(pair.forward, step.loops.loops[pair.forward], all_own, count)
    step = step.with_routine(values, [replace(first, is_part=True)])
    step = step.with_routine(rest, (replace(run, own=of_run) for run in others))
    step = step.with_routine(backward, (replace(run, own=of_run) for run in step.routines["gradients"]))
    of_sinks = [replace(add_rows(run.number, run.loop, all_own, count), is_part=True) for run in sinks]
    step = step.with_routine(added_up, of_sinks)

    compute = (
        steps.TakeRows(count, own["x"].place),
        steps.Perform(values),
        steps.EachRow((steps.Perform(rest), steps.Perform(backward))),
    )
    restore = tuple(steps.Copy(Place(start), place, stop - start) for (start, stop), place in (own["x"], own["v"]))
    (start, _), place = own["v"]
    loss = step.loops.loss.base
    step = with_rows(
        step,
        compute=(steps.Divided("rows", compute),),
        before_guard=(steps.Copy(Place(loss), place._replace(base=place.base + loss - start), 1),),
        after_guard=(),
        add=(steps.Divided("lanes", (steps.Perform(added_up),)),),
        restore=restore,
    )
    return step.with_programs(together=steps.rewrite(step.programs["together"], _in_parts))


def _in_parts(statement: Statement) -> Program:
    return (steps.Divided("lanes", (statement,)),) if isinstance(statement, steps.Update) else (statement,)


def _row_count(step: Step, form: Form) -> int:
    """Rows to take together: for each thread, as many as one thread alone would take."""
    if form.rows is not None:
        return form.rows
    size = sum(step.area(name).stop - step.area(name).start for name in OWN)
    wanted = form.threads * form.rows_together(step.loops.inputs, step.loops.parameters)
    return min(wanted, MOST_BYTES // (8 * size))


def _has_form(step: Step, pair: Pair) -> bool:
    """Whether the loops have a form for rows with own areas.

    Every operand is a number or an access without lists of offsets. The first loop reads only inputs and parameters.
    """
    loops = step.loops.loops
    return (
        all(map(has_strides, loops))
        and reads_no_values(step, loops[pair.forward])
        and all(adds_rows(run.loop) for run in step.routines["sinks"])
    )
