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

from collections.abc import Mapping
from dataclasses import replace
from typing import Optional

from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.rearrange.together import take_rows_together
from zoomgrad.engines.rerolled.rearrange.weight_reuse import Pair, pair_of_loops
from zoomgrad.engines.rerolled.recover.loops import VECTOR, Access, Operand, Segment
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import (
    Copy,
    Divided,
    EachRow,
    Fact,
    If,
    Perform,
    Place,
    Program,
    Run,
    Statement,
)
from zoomgrad.engines.rerolled.step.spans import reads
from zoomgrad.engines.rerolled.step.step import Step

OWN = {"x": "rows", "v": "row_values", "g": "row_gradients", "u": "row_others"}
"""Area -> the area with the same content for each of the rows taken together."""
Own = Mapping[str, Place]

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
            size = area.stop - area.start
            size += VECTOR * (size % 512 == 0)  # at a multiple of 4 KiB, all rows would share one cache set
            step, added = step.with_area(of_rows, count * size)
            own[name] = Place(added.start, size)
    owned = tuple(own.items())
    values, rest, backward = f"values of {count} rows", f"values but loop {pair.forward}", "gradients of a row"
    added_up = f"sinks of {count} rows"
    others = [run for run in step.routines["values"] if run.number != pair.forward]
    step = step.with_routine(values, [_first_loop(step, pair, own, count)])
    step = step.with_routine(rest, (replace(run, own=owned) for run in others))
    step = step.with_routine(backward, (replace(run, own=owned) for run in step.routines["gradients"]))
    step = step.with_routine(added_up, (_sum_of_rows(step, run, own, count) for run in sinks))

    turn = step.programs["turn"]
    single = turn[turn.index(steps.TakeRow()) + 1 :]
    gives = [s for s in single if s == steps.Give("outputs")]
    update = next(s for s in steps.walk(single) if isinstance(s, If) and s.condition == Fact.ENDS)
    compute = (steps.TakeRows(count, own["x"]), Perform(values), EachRow((Perform(rest), Perform(backward))))
    add = Divided("lanes", (Perform(added_up),))
    whole = {name: step.area(name) for name in ("x", "v") if name in own}
    restore = tuple(Copy(Place(area.start), own[name], area.stop - area.start) for name, area in whole.items())
    loss = step.loops.loss
    of_row = [Copy(Place(loss.base), _of_row(step, loss.base, own), 1)] if isinstance(loss, Access) else []
    together: Program = (
        Divided("rows", compute),
        EachRow((*of_row, steps.Guard((steps.KeepEarlier(), add, *restore, *gives)))),
        add,
        EachRow(restore, last=True),
        *gives,
        If(Fact.ENDS_WITH_ROWS, steps.rewrite(update.then, _in_parts)),
        steps.EndTurn(),
    )
    return step.with_programs(turn=(If(Fact.BATCHED, together), *turn))


def _in_parts(statement: Statement) -> Program:
    return (Divided("lanes", (statement,)),) if isinstance(statement, steps.Update) else (statement,)


def _row_count(step: Step, form: Form) -> int:
    """Rows to take together: for each thread, as many as one thread alone would take."""
    if form.rows is not None:
        return form.rows
    size = sum(step.area(name).stop - step.area(name).start for name in OWN)
    wanted = form.threads * form.rows_together(step.loops.inputs, step.loops.parameters)
    return min(wanted, MOST_BYTES // (8 * size))


def _has_form(step: Step, pair: Pair) -> bool:
    """Whether the loops have a form for rows with own areas.

    Every operand is a number or an access without lists of offsets. The first loop reads only inputs and parameters. A
    sink has one term for each row, and at most two lane counts, as tiles do.
    """
    loops = step.loops.loops
    operands = [o for loop in loops for o in (loop.target, *(o for each in loop.segments for o in each.operands))]
    accesses = [operand for operand in operands if not isinstance(operand, float)]
    sinks = [run.loop for run in step.routines["sinks"]]
    others = [step.area(name) for name in ("v", "g", "u")]
    return (
        all(isinstance(o, Access) and all(isinstance(s, int) for s in (*o.lanes, *o.terms)) for o in accesses)
        and not any(reads(loops[pair.forward], (area.start, area.stop)) for area in others)
        and all(len(s.segments) == 1 and not s.segments[0].counts and len(s.counts) <= 2 for s in sinks)
    )


def _of_row(step: Step, place: int, own: Own) -> Place:
    """The same place in the current row's own areas."""
    area = step.area_of(place)
    return Place(own[area.name].base + place - area.start, own[area.name].per_row)


def _moved(step: Step, operand: Operand, own: Own) -> tuple[Operand, int]:
    """An operand of the first of the rows, and its stride from row to row, which is 0 for what all rows share."""
    if isinstance(operand, Access) and step.area_of(operand.base).name in own:
        place = _of_row(step, operand.base, own)
        return operand._replace(base=place.base), place.per_row
    return operand, 0


def _first_loop(step: Step, pair: Pair, own: Own, count: int) -> Run:
    """The forward loop over the inputs, with an outer lane for each row."""
    loop = step.loops.loops[pair.forward]

    def widened(operand: Operand) -> Operand:
        moved, stride = _moved(step, operand, own)
        return moved._replace(lanes=(stride, *moved.lanes)) if isinstance(moved, Access) else moved

    segments = tuple(s._replace(operands=tuple(map(widened, s.operands))) for s in loop.segments)
    target = widened(loop.target)
    assert isinstance(target, Access)
    of_rows = replace(loop, counts=(count, *loop.counts), target=target, segments=segments)
    return Run(pair.forward, of_rows, rows=count, is_part=True)


def _sum_of_rows(step: Step, run: Run, own: Own, count: int) -> Run:
    """A sink with a term for each row, and two lane counts."""
    loop = run.loop
    missing = 2 - len(loop.counts)

    def widened(access: Access, terms: tuple[int, ...], last: int = 0) -> Access:
        return Access(access.base, (*[0] * missing, *access.lanes)[:2] if loop.counts else (0, last), terms)

    operands = []
    for operand in loop.segments[0].operands:
        moved, stride = _moved(step, operand, own)
        operands.append(widened(moved, (stride,)) if isinstance(moved, Access) else moved)
    (segment,) = loop.segments
    return Run(
        run.number,
        replace(
            loop,
            counts=(*[1] * missing, *loop.counts),
            target=widened(loop.target, (), 1),
            segments=(Segment(segment.template, (count,), tuple(operands)),),
        ),
        rows=count,
        is_part=True,
    )
