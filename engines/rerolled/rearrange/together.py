"""Rows together: several rows of one batch share each load of the weights, which stay the same.

Each row has places of its own for inputs, values and gradients: see `rows`. A *wide* loop runs once for all rows: the
forward loop over the first layer's weights, later loops of values and gradients over many weights, simple loops between
them, and the sinks of many weights. The other loops run row by row, and each row records its loss. Every sum keeps its
order: a lane is one sum of one row, and a gradient adds the rows' terms one after the other.

Wide loops are like products of two matrices, so the back end runs them in tiles that fit the registers: some rows by
some vectors of sums, or some inputs by some vectors of gradients, which stay in registers while the rows pass by.

Example: three rows, one weight w. The forward loop computes w * x1, w * x2 and w * x3 with one load of w. After each
row has computed its factor f, the sink computes q += x1 * f1; q += x2 * f2; q += x3 * f3 with one load and one store of
q. If row 2 has a loss that is not finite, only `q += x1 * f1` runs.

Example with many weights in two layers, `mlp-64x256x10-b100`:

    loops 0, 1 and 2 for 48 rows   the sums of 256 units, their activations, and the sums of 10 classes
    loops 3 to 7, row by row       the loss, and the gradients of the classes
    loop 8 for 48 rows             the gradients of the activations
    loop 9, row by row             the gradients of the units
    loops 10 and 12 for 48 rows    the gradients of both layers' weights
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zoomgrad.engines.rerolled.form import Form, has_strides, lies_in_vectors
from zoomgrad.engines.rerolled.rearrange import weight_reuse
from zoomgrad.engines.rerolled.rearrange.from_panels import turned
from zoomgrad.engines.rerolled.rearrange.rows import (
    add_rows,
    can_add_rows,
    of_first_row,
    over_rows,
    reads_no_values,
    with_own,
    with_rows,
)
from zoomgrad.engines.rerolled.rearrange.weight_reuse import pair_of_loops
from zoomgrad.engines.rerolled.recover.loops import Access, Loop
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import Fact, Program, Run, Statement
from zoomgrad.engines.rerolled.step.step import Pair, Step


def take_rows_together(step: Step, form: Form) -> Step:
    """Take rows of one batch together, if a pair of loops shares its weights, and reads nothing else that differs."""
    pair = pair_of_loops(step.loops)
    if pair is None or not has_form(step, pair):
        return step
    count = form.rows_together(step.loops.inputs, step.loops.parameters)
    step = with_own(step, count)
    values = sorted(step.routines["values"], key=lambda run: run.number != pair.forward)
    (sums, *_), *forward = _stages(step, values, count)
    small, wide = _sinks(step, pair)
    *others, sink = (add_rows(step, number, count) for number in wide)
    step, first, last = _of_pair(step, pair, sums, sink)
    step, add = _routine(step, f"other sinks of {count} rows", others)
    step, end = _routine(step, "sinks of a row", small)
    step, compute = _in_passes(step, "values", forward)
    step, gradients = _in_passes(step, "gradients", _stages(step, step.routines["gradients"], count))
    if step.skips:
        end = (steps.CheckFactors(of_rows=True), *end)
    taken = steps.TakeRows(count, of_first_row(step, step.area("x").start))
    guard, ends = steps.EachRow((steps.Guard(),)), (steps.EachRow(end),) if end else ()
    return with_rows(step, (taken, *first, *compute, guard, *gradients, *ends), (*add, *last))


def has_form(step: Step, pair: Pair) -> bool:
    """Whether the pair's loops have a form for all rows, and its forward loop can run before all others."""
    forward = step.loops.loops[pair.forward]
    return (
        _is_plain(step, forward)
        and pair.factor.lanes == (1,)
        and all(isinstance(operand, Access) for segment in forward.segments for operand in segment.operands)
        and reads_no_values(step, forward)
    )


def _stages(step: Step, runs: Sequence[Run], count: int) -> list[list[Run]]:
    """Runs in their order, cut into stages: a loop for all rows, or consecutive loops of each row.

    Loops over many weights are wide, and so are simple loops between them, if tiles have a form for them.
    """
    many = [at for at, run in enumerate(runs) if _has_many_terms(step, run.loop)]
    stages: list[list[Run]] = []
    for at, run in enumerate(runs):
        if at in many or (many and many[0] < at < many[-1] and _is_plain(step, run.loop)):
            stages.append([over_rows(step, run.number, count)])
        elif stages and stages[-1][0].rows == 1:
            stages[-1].append(run)
        else:
            stages.append([run])
    return stages


def _in_passes(step: Step, what: str, stages: Sequence[Sequence[Run]]) -> tuple[Step, list[Statement]]:
    """Add routines for the stages, and return the statements that run them."""
    statements: list[Statement] = []
    for runs in stages:
        first = runs[0]
        name = f"{what} from loop {first.number}" if first.rows == 1 else f"loop {first.number} of {first.rows} rows"
        step = step.with_routine(name, runs)
        statements.append(steps.Perform(name) if first.rows > 1 else steps.EachRow((steps.Perform(name),)))
    return step, statements


def _sinks(step: Step, pair: Pair) -> tuple[list[Run], list[int]]:
    """The sinks of each row, and the numbers of wide sinks, of which the last is the pair's."""
    small, wide = [], []
    for run in step.routines["sinks"]:
        if run.number == pair.sink or (run.loop.lanes >= weight_reuse.MANY and can_add_rows(run.loop)):
            wide.append(run.number)
        else:
            small.append(run)
    return small, sorted(wide, key=pair.sink.__eq__)


def _has_many_terms(step: Step, loop: Loop) -> bool:
    """Whether a loop computes sums side by side, as the pair's does, with many terms in all."""
    terms = sum(segment.terms for segment in loop.segments if segment.counts)
    return loop.lanes * terms >= weight_reuse.MANY and _is_plain(step, loop)


def _is_plain(step: Step, loop: Loop) -> bool:
    """Whether tiles have a form for all rows of a loop: with vectors of lanes, perhaps in a panel.

    Functions of libm take one number at a time.
    """
    if len(loop.counts) != 1 or loop.target.lanes != (1,) or not has_strides(loop) or loop.calls:
        return False
    return lies_in_vectors(loop, turned(step, loop))


def _of_pair(step: Step, pair: Pair, sums: Run, sink: Run) -> tuple[Step, Program, Program]:
    """The routines of the pair's loops for all rows, and the programs that run them."""
    values, sinks = f"values of {sums.rows} rows", f"sinks of {sums.rows} rows"
    step = step.with_routine(values, [sums]).with_routine(sinks, [sink])
    if not step.skips:
        return step, (steps.Perform(values),), (steps.Perform(sinks),)
    live, turned = f"live {values}", f"live {sinks}"
    step = step.with_routine(live, [replace(sums, live_segment=pair.segment)])
    step = step.with_routine(turned, [replace(sink, live_segment=0)])
    listed = pair.inputs[1] - pair.inputs[0]
    step, _ = step.with_area("lists", sums.rows * (listed + 1))
    step, _ = step.with_area("turned", listed * (sums.rows + 1))
    first: Program = (
        steps.If(Fact.UNBOUNDED, (steps.MeasureWeights(),)),
        steps.ListRows(),
        steps.If(Fact.EVERY_INPUT_OF_ROWS, (steps.Perform(values),), (steps.Perform(live),)),
    )
    last = steps.If(Fact.EVERY_INPUT_OF_ROWS, (steps.Perform(sinks),), (steps.TurnLists(), steps.Perform(turned)))
    return step, first, (last,)


def _routine(step: Step, name: str, runs: Sequence[Run]) -> tuple[Step, Program]:
    """Add a routine, unless it is empty, and return the program that runs it."""
    return (step.with_routine(name, runs), (steps.Perform(name),)) if runs else (step, ())
