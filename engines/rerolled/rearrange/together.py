"""Rows together: several rows of one batch share each load of the weights, which stay the same.

Each row has places of its own for inputs, values and gradients: see `rows`. A *wide* loop runs once for all rows: the
forward loop over the first layer's weights, later loops of values and gradients with many terms, simple loops between
them, and the sinks of many weights. The other loops run row by row, and each row records its loss. Every sum keeps its
order: a lane is one sum of one row, and a gradient adds the rows' terms one after the other.

Wide loops are like products of two matrices, so the back end runs them in tiles that fit the registers: some rows by
some vectors of sums, or some inputs by some vectors of gradients, which stay in registers while the rows pass by.

Threads divide a step with enough work: passes by rows, gradients and updates by lanes. They meet before the losses are
recorded in order, and before gradients are added. One thread computes a sum from its first term to its last, so the
bits are the same for any number of threads. Batches of one row are not divided.

Example: three rows, one weight w. The forward loop computes w * x1, w * x2 and w * x3 with one load of w. After each
row has computed its factor f, the sink computes q += x1 * f1; q += x2 * f2; q += x3 * f3 with one load and one store of
q. If row 2 has a loss that is not finite, only `q += x1 * f1` runs.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from zoomgrad.engines.rerolled.form import Form, has_strides, lies_in_vectors
from zoomgrad.engines.rerolled.rearrange.from_panels import turned
from zoomgrad.engines.rerolled.rearrange.rows import add_rows, can_add_rows, of_first_row, over_rows, own_size
from zoomgrad.engines.rerolled.rearrange.weight_reuse import pair_of_loops
from zoomgrad.engines.rerolled.rearrange.zeros import list_size
from zoomgrad.engines.rerolled.recover.loops import Loop
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import Fact, Place, Program, Run, Statement, rewrite, walk
from zoomgrad.engines.rerolled.step.step import Step

MANY = 256
"""The fewest weights whose gradients stay in registers while the rows add to them. Loops that only share loads of
weights need `Form.many_terms`."""
MOST_LISTED_ROWS = 60
"""The most rows whose nonzero inputs are listed: a word has 64 bits. Tiles of 6 and of 4 rows divide it."""
MOST_BYTES = 32 << 20
"""The most memory for the own places of rows that threads divide."""
LEAST_WORK = 2_000_000
"""Primitives of the rows taken together, from which on they are divided: some 200 microseconds on one thread. An empty
division takes one, if each thread has a core for itself, but a millisecond while other processes use the cores."""


def take_rows_together(step: Step, form: Form) -> Step:
    """Take rows of one batch together, if a pair of loops shares its weights, and tiles have a form for both loops."""
    pair, loops = pair_of_loops(step.loops), step.loops.loops
    if pair is None or not _is_plain(step, loops[pair.forward]) or not can_add_rows(loops[pair.sink]):
        return step
    count, is_divided = _row_count(step, form)
    apart = step.apart(own_size(step))
    step, own = step.with_area("own", count * apart)
    step = replace(step, own=Place(own.start - step.area("x").start, apart))
    taken = steps.TakeRows(count, of_first_row(step, step.area("x").start), lists=bool(step.skips))
    terms = [loop.lanes * sum(segment.terms for segment in loop.segments if segment.counts) for loop in loops]
    many = [pair.forward, *(number for number, of_loop in enumerate(terms) if of_loop >= form.many_terms)]
    step, values = _in_stages(step, "values", count, many)
    step, gradients = _in_stages(step, "gradients", count, many)
    step, ends, sinks = _add_up(step, count)
    measure = (steps.If(Fact.UNBOUNDED, (steps.MEASURE_WEIGHTS,)),) if step.skips else ()
    values, turn = (*measure, taken, *values), step.programs["turn"]
    update = next(s.then for s in walk(turn) if isinstance(s, steps.If) and s.condition == Fact.ENDS)
    if is_divided:
        values, gradients = (steps.Divided("rows", values),), (steps.Divided("rows", gradients),)
        sinks = tuple(steps.Divided("lanes", (sink,)) for sink in sinks)
        update = rewrite(update, lambda s: (steps.Divided("lanes", (s,)) if isinstance(s, steps.Update) else s,))
    # The caller sees the inputs and outputs of the last row, or of the one that failed. Rows before that still count.
    gives = [s for s in turn[turn.index(steps.TAKE_ROW) :] if s == steps.Give("outputs")]
    areas = (area for area in map(step.area, "xv") if area.size)
    shown = tuple(steps.Copy(Place(area.start), of_first_row(step, area.start), area.size) for area in areas)
    rest = (*gradients, *ends, *sinks)
    guard, last = steps.Guard((*rest, *shown, *gives)), steps.EachRow(shown, last=True)
    ended = steps.If(Fact.ENDS, update)
    return step.with_programs(together=(*values, steps.EachRow((guard,)), last, *gives, *rest, ended))


def _row_count(step: Step, form: Form) -> tuple[int, bool]:
    """The most rows to take together, and whether threads divide them: then more rows."""
    count = form.rows_together(step.loops.inputs, own_size(step) - step.loops.inputs, step.loops.parameters)
    if step.skips:
        count = min(count, MOST_LISTED_ROWS)
    divided = min(form.threads * count, MOST_BYTES // (8 * own_size(step)))
    work = divided * sum(loop.work for loop in step.loops.loops)
    if form.threads == 1 or divided < 2 or work < LEAST_WORK:
        return count, False
    return divided, True


def _in_stages(step: Step, routine: str, count: int, many: list[int]) -> tuple[Step, Program]:
    """Cut a routine into wide loops, and consecutive loops of each row; return the program that runs them.

    Loops of many terms, and simple loops between them, are wide if tiles have a form for them. many: the former.
    """
    runs = step.routines[routine]
    many = [run.number for run in runs if run.number in many and _is_plain(step, run.loop)]
    program: list[Statement] = []

    def is_wide(run: Run) -> bool:
        return run.number in many or (bool(many) and many[0] < run.number < many[-1] and _is_plain(step, run.loop))

    for wide, group in groupby(runs, is_wide):
        if wide:
            for run in group:
                step, performed = _for_all_rows(step, over_rows(step, run.number, count))
                program += performed
        else:
            narrow = tuple(group)
            name = f"{routine} from loop {narrow[0].number}"
            step = step.with_routine(name, narrow)
            program.append(steps.EachRow((steps.Perform(name),)))
    return step, tuple(program)


def _add_up(step: Step, count: int) -> tuple[Step, Program, Program]:
    """The programs that run the sinks: row by row, and the wide ones, of which the largest is the last."""
    narrow: list[Run] = []
    sinks: list[Statement] = []
    for run in sorted(step.routines["sinks"], key=lambda run: run.loop.lanes):
        if run.loop.lanes >= MANY and can_add_rows(run.loop):
            step, performed = _for_all_rows(step, add_rows(step, run.number, count))
            sinks += performed
        else:
            narrow.append(run)
    end: list[Statement] = [steps.CHECK_FACTORS] if step.skips else []
    if narrow:
        step = step.with_routine("sinks of a row", narrow)
        end.append(steps.Perform("sinks of a row"))
    return step, (steps.EachRow(tuple(end)),) if end else (), tuple(sinks)


def _for_all_rows(step: Step, run: Run) -> tuple[Step, Program]:
    """Add a routine for a wide loop, and another one over nonzero inputs; return the program that runs one of them."""
    name, pair = f"loop {run.number} of {run.rows} rows", step.skips
    step = step.with_routine(name, [run])
    every: Program = (steps.Perform(name),)
    if pair is None or run.number not in (pair.forward, pair.sink):
        return step, every
    live: Program = (steps.Perform(f"live {name}"),)
    if run.sums_rows:
        step, _ = step.with_area("turned", pair.inputs[1] - pair.inputs[0])
        step = step.with_routine(f"live {name}", [replace(run, live_segment=0)])
        return step, (steps.If(Fact.EVERY_INPUT, every, (steps.TURN_LISTS, *live)),)
    step, _ = step.with_area("lists", run.rows * list_size(pair))
    step = step.with_routine(f"live {name}", [replace(run, live_segment=pair.segment)])
    return step, (steps.If(Fact.EVERY_INPUT, every, live),)


def _is_plain(step: Step, loop: Loop) -> bool:
    """Whether tiles have a form for all rows of a loop: with vectors of lanes, perhaps in a panel.

    Functions of libm take one number at a time.
    """
    if len(loop.counts) != 1 or loop.target.lanes != (1,) or not has_strides(loop) or loop.calls:
        return False
    return lies_in_vectors(loop, turned(step, loop))
