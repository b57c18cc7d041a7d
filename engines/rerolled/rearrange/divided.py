"""Divide a step among threads: passes by rows, gradients and updates by lanes. Every sum keeps its order.

A batch's rows do not depend on one another while the parameters stay the same. So each of the rows taken together has
its own inputs, values and gradients (its *own areas*), and each thread computes some of the rows. Then the threads
meet, and the losses are recorded in order. Next, each thread computes some of the gradients: it adds the products of
all rows, row by row. At a batch's end, each thread updates some of the parameters. One thread computes a sum from its
first term to its last, so the bits are the same for any number of threads.

If every row is a batch, only lanes can be divided, in each long loop separately.

Example: three rows and two threads. One thread computes the losses and factors of row 0, the other those of rows 1 and
2. If row 1 has a loss that is not finite, only row 0 counts. Then the first thread adds x[0] * f of each row to the
first half of q, and the other adds x[1] * f of each row to the second half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Optional

from engines.graph.expr import calls
from engines.rerolled.form import Form, lies_in_vectors, vector_widths
from engines.rerolled.rearrange.together import FEWEST, take_rows_together
from engines.rerolled.rearrange.weight_reuse import Pair, pair_of
from engines.rerolled.recover.loops import VECTOR, Access, Loop, Operand, Segment
from engines.rerolled.step.language import (
    Batched,
    BatchEnds,
    Copy,
    Divided,
    EachRow,
    EndTurn,
    Give,
    Guard,
    If,
    KeepEarlier,
    Perform,
    Place,
    Program,
    Run,
    Statement,
    TakeRow,
    TakeRows,
    Update,
    rewrite,
    walk,
)
from engines.rerolled.step.spans import reads
from engines.rerolled.step.step import Step

OWN = {"x": "rows", "v": "row_values", "g": "row_gradients", "u": "row_others"}
"""Area -> the area with the same content for each of the rows taken together."""
Own = Mapping[str, Place]

MOST_BYTES = 32 << 20
"""The most memory for the rows' own areas."""
LEAST_WORK = 50_000
"""Primitives in the shortest loop that is divided by lanes: a few microseconds. The pool decides by measurement."""


def divide(step: Step, form: Form) -> Step:
    """Divide batches by rows and lanes, if possible, and single rows by lanes."""
    rows = _by_rows(step, form)
    return _single_rows_by_lanes(take_rows_together(step, form) if rows is None else rows, form)


# --- batches ---------------------------------------------------------------------------------------------------------


def _by_rows(step: Step, form: Form) -> Optional[Step]:
    """Take rows together in own areas; None if a loop has no form for that."""
    found = pair_of(step)
    if found is None or step.skips or not all(map(_is_affine, step.loops.loops)):
        return None
    count = _row_count(step, form)
    sinks = step.routines["sinks"]
    if count < FEWEST or not all(_is_product_of_row(run.loop) for run in sinks):
        return None
    own = {}
    for name, its in OWN.items():
        area = step.area(name)
        if area.stop > area.start:
            size = _apart(area.stop - area.start)
            step, added = step.with_area(its, count * size)
            own[name] = Place(added.start, size)
    first = _first_loop(step, found, own, count)
    if first is None:
        return None
    owned = tuple(own.items())
    values, rest, backward = f"values of {count} rows", f"values but loop {found.forward}", "gradients of a row"
    added_up = f"sinks of {count} rows"
    others = [run for run in step.routines["values"] if run.number != found.forward]
    step = step.with_routine(values, [first])
    step = step.with_routine(rest, (replace(run, own=owned) for run in others))
    step = step.with_routine(backward, (replace(run, own=owned) for run in step.routines["gradients"]))
    step = step.with_routine(added_up, (_sum_of_rows(step, run, own, count) for run in sinks))

    turn = step.programs["turn"]
    single = turn[turn.index(TakeRow()) + 1 :]
    gives = [s for s in single if s == Give("outputs")]
    update = next(s for s in walk(single) if isinstance(s, If) and s.condition == BatchEnds())
    add = Divided("lanes", (Perform(added_up),))
    whole = {name: step.area(name) for name in ("x", "v") if name in own}
    restore = tuple(Copy(Place(area.start), own[name], area.stop - area.start) for name, area in whole.items())
    loss = step.loops.loss
    its_loss = [Copy(Place(loss.base), _of_row(step, loss.base, own), 1)] if isinstance(loss, Access) else []
    return step.with_programs(
        turn=(
            If(
                Batched(FEWEST),
                (
                    Divided(
                        "rows",
                        (
                            TakeRows(count, own["x"]),
                            Perform(values),
                            EachRow((Perform(rest), Perform(backward))),
                        ),
                    ),
                    EachRow((*its_loss, Guard((KeepEarlier(), add, *restore, *gives)))),
                    add,
                    EachRow(restore, last=True),
                    *gives,
                    If(BatchEnds(together=True), rewrite(update.then, _in_parts)),
                    EndTurn(),
                ),
            ),
            *turn,
        )
    )


def _in_parts(statement: Statement) -> Program:
    return (Divided("lanes", (statement,)),) if isinstance(statement, Update) else (statement,)


def _row_count(step: Step, form: Form) -> int:
    """Rows to take together: for each thread, as many as one thread alone would take."""
    if form.rows is not None:
        return form.rows
    size = sum(step.area(name).stop - step.area(name).start for name in OWN)
    wanted = form.threads * form.rows_together(step.loops.inputs, step.loops.parameters)
    return min(wanted, MOST_BYTES // (8 * size))


def _apart(size: int) -> int:
    """The distance between rows: not a multiple of 4 KiB, or the same place of all rows would share one cache set."""
    return size + VECTOR if size % 512 == 0 else size


def _is_affine(loop: Loop) -> bool:
    """Whether every operand is a number or an access without lists of offsets."""
    return all(
        isinstance(operand, float)
        or (isinstance(operand, Access) and all(isinstance(s, int) for s in (*operand.lanes, *operand.terms)))
        for operand in (loop.target, *(o for segment in loop.segments for o in segment.operands))
    )


def _is_product_of_row(loop: Loop) -> bool:
    """Whether a sink has one term for each row, and at most two lane counts, as tiles do."""
    return len(loop.segments) == 1 and not loop.segments[0].counts and len(loop.counts) <= 2


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


def _first_loop(step: Step, found: Pair, own: Own, count: int) -> Optional[Run]:
    """The forward loop over the inputs, with an outer lane for each row; None if it reads more than inputs."""
    loop = step.loops.loops[found.forward]

    def widened(operand: Operand) -> Operand:
        moved, stride = _moved(step, operand, own)
        return moved._replace(lanes=(stride, *moved.lanes)) if isinstance(moved, Access) else moved

    for name in ("v", "g", "u"):
        area = step.area(name)
        if reads(loop, (area.start, area.stop)):
            return None
    segments = tuple(s._replace(operands=tuple(map(widened, s.operands))) for s in loop.segments)
    target = widened(loop.target)
    assert isinstance(target, Access)
    of_rows = replace(loop, counts=(count, *loop.counts), target=target, segments=segments)
    return Run(found.forward, of_rows, rows=count, is_part=True)


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


# --- single rows -----------------------------------------------------------------------------------------------------


def _single_rows_by_lanes(step: Step, form: Form) -> Step:
    """Divide each long loop over a single row by its lanes."""
    cut: dict[str, Program] = {}
    for name, runs in [*step.routines.items()]:
        if any(run.rows > 1 or run.own for run in runs) or not any(_pays(run, form) for run in runs):
            continue
        parts: list[Statement] = []
        for number, (is_long, group) in enumerate(_groups(runs, form)):
            routine = f"part {number + 1} of {name}"
            step = step.with_routine(routine, (replace(run, is_part=is_long) for run in group))
            parts.append(Divided("lanes", (Perform(routine),)) if is_long else Perform(routine))
        cut[name] = tuple(parts)

    def change(statement: Statement) -> Program:
        return cut.get(statement.routine, (statement,)) if isinstance(statement, Perform) else (statement,)

    return step.with_programs(turn=rewrite(step.programs["turn"], change))


def _groups(runs: tuple[Run, ...], form: Form) -> Iterator[tuple[bool, list[Run]]]:
    """Runs in order: each long one alone, and the others grouped between them."""
    group: list[Run] = []
    for run in runs:
        if not _pays(run, form):
            group.append(run)
            continue
        if group:
            yield False, group
        yield True, [run]
        group = []
    if group:
        yield False, group


def _pays(run: Run, form: Form) -> bool:
    """Whether the run is long, and its outermost lanes can be divided."""
    loop = run.loop
    if run.is_live or run.rows > 1 or not loop.counts or loop.work < LEAST_WORK or not _is_affine(loop):
        return False
    if run.due and run.due.keeps:
        return False  # each thread would keep the inputs while others read those of the row before
    if len(loop.counts) > 1:
        return True
    called = any(calls(segment.template) for segment in loop.segments)
    widths = vector_widths(loop.counts[0], loop.room, form.width if lies_in_vectors(loop) and not called else 1)
    return len(widths) >= 2 * form.accumulators
