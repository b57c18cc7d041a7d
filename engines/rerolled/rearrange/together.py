"""Rows together: several rows of one batch share each load of the weights, which stay the same.

A *wide* loop runs once for all rows: the forward loop over the first layer's weights, later forward loops over many
weights, simple loops between them, and the sinks of many weights. The other loops run row by row, in *passes*: one
follows each wide forward loop, and the last one also records the loss and runs the gradients. A row *keeps* what wide
loops and later passes read of it: the pass that computes a span saves it, and a later pass takes it back to its usual
place. Every sum keeps its order: a lane is one sum of one row, and a gradient adds the rows' terms one after the other.

Wide loops are like products of two matrices, so the back end runs them in tiles that fit the registers: some rows by
some vectors of sums, or some inputs by some vectors of gradients, which stay in registers while the rows pass by.

Example: three rows, one weight w. The forward loop computes w * x1, w * x2 and w * x3 with one load of w. After each
row has computed its factor f, the sink computes q += x1 * f1; q += x2 * f2; q += x3 * f3 with one load and one store of
q. If row 2 has a loss that is not finite, only `q += x1 * f1` runs.

Example with many weights in two layers, `mlp-64x256x10-b100`:

    loops 0, 1 and 2 for 48 rows   the sums of 256 units, their activations, and the sums of 10 classes
    the others, row by row         take activations and sums, compute loss and gradients, save factors
    loops 10 and 12 for 48 rows    the gradients of both layers' weights
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from zoomgrad.engines.rerolled.form import Form, has_strides
from zoomgrad.engines.rerolled.rearrange import weight_reuse
from zoomgrad.engines.rerolled.rearrange.rows import Own, add_rows, adds_rows, over_rows, reads_no_values, with_rows
from zoomgrad.engines.rerolled.rearrange.weight_reuse import pair_of_loops
from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Phase
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import Fact, Place, Program, Run, Statement
from zoomgrad.engines.rerolled.step.spans import Span, meets, reads, spans_read
from zoomgrad.engines.rerolled.step.step import Pair, Step


class Order(NamedTuple):
    """Which loops run for all rows, and which for each row. Pass n follows wide loop n."""

    wide: list[Run]
    """Forward loops. The first is the pair's."""
    passes: list[list[Run]]
    """Forward loops of each row."""
    small: list[Run]
    """Sinks of each row, in the last pass."""
    sinks: list[Run]
    """Wide sinks. The last is the pair's."""


class Kept(NamedTuple):
    """The spans that each row keeps."""

    own: list[Own]
    takes: list[list[Statement]]
    """For each pass, the copies of spans to their usual places, which it makes when it begins."""
    saves: list[list[Statement]]
    """For each pass, the copies from the usual places, which it makes when it ends."""


def take_rows_together(step: Step, form: Form) -> Step:
    """Take rows of one batch together, if only the inputs differ between them in the loops of a pair."""
    pair = pair_of_loops(step.loops)
    if pair is None or not _share_all_else(step, pair):
        return step
    count = form.rows_together(step.loops.inputs, step.loops.parameters)
    step, area = step.with_area("rows", count * step.apart(step.loops.inputs))
    x = Place(area.start, step.apart(step.loops.inputs))
    order = _order(step, pair)
    loops = _loops_of(step, order)
    step, kept = _keep(step, order, loops, count)
    own = [Own((0, step.loops.inputs), x), *kept.own]
    sums = [over_rows(run.number, run.loop, own, count) for run in order.wide]
    *other_sinks, sink = (add_rows(run.number, run.loop, own, count) for run in order.sinks)

    step, first, last = _of_pair(step, pair, sums[0], sink, x)
    step, others = _routine(step, f"other sinks of {count} rows", other_sinks)
    step, small = _routine(step, "sinks of a row", order.small)
    compute: Program = (steps.TakeRows(count, x), *first)
    run_pass: Program = ()
    for number, runs in enumerate(order.passes):
        if number:
            step, next_sums = _routine(step, f"loop {sums[number].number} of {count} rows", [sums[number]])
            row = (*run_pass, *kept.saves[number - 1])
            compute = (*compute, *([steps.EachRow(row)] if row else ()), *next_sums)
        step, values = _routine(step, f"values after loop {sums[number].number}", runs)
        run_pass = (*_inputs(step, loops[number], x, pair), *kept.takes[number], *values)
    check = (steps.CheckFactors(x),) if step.skips else ()
    return with_rows(
        step,
        compute=compute,
        before_guard=run_pass,
        after_guard=(steps.Perform("gradients"), *check, *small, *kept.saves[-1]),
        add=(*others, *last),
        restore=(steps.Copy(Place(0), x, step.loops.inputs),),
    )


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


def _order(step: Step, pair: Pair) -> Order:
    """Loops over many weights are wide, and so are simple loops between them, if tiles have a form for them."""
    values = {run.number: run for run in step.routines["values"]}
    order = Order([values.pop(pair.forward)], [[]], [], [])
    runs = [*values.values()]
    sums = [number for number, run in enumerate(runs) if _has_many_terms(run.loop)]
    for number, run in enumerate(runs):
        if number in sums or (sums and number < sums[-1] and _is_plain(run.loop)):
            order.wide.append(run)
            order.passes.append([])
        else:
            order.passes[-1].append(run)
    for run in step.routines["sinks"]:
        if run.number != pair.sink:
            (order.sinks if run.loop.lanes >= weight_reuse.MANY and adds_rows(run.loop) else order.small).append(run)
    order.sinks.append(next(run for run in step.routines["sinks"] if run.number == pair.sink))
    return order


def _has_many_terms(loop: Loop) -> bool:
    """Whether a forward loop computes sums side by side, as the pair's does, with many terms in all."""
    return loop.lanes * sum(s.terms for s in loop.segments if s.counts) >= weight_reuse.MANY and _is_plain(loop)


def _is_plain(loop: Loop) -> bool:
    """Whether tiles have a form for all rows of a forward loop. Functions of libm take one number at a time."""
    return len(loop.counts) == 1 and loop.target.lanes == (1,) and has_strides(loop) and not loop.calls


def _keep(step: Step, order: Order, loops: Sequence[Sequence[Loop]], count: int) -> tuple[Step, Kept]:
    """Add an area for the spans that each row keeps: what a wide loop computes or reads, or what a later pass reads.

    loops: of each pass.
    """
    wide = [run.loop.target.extent(run.loop.counts) for run in order.wide]
    # Sinks compute nothing that is kept.
    passes = [[loop.target.extent(loop.counts) for loop in each if loop.phase != Phase.SINK] for each in loops]
    read_by_passes = [[span for loop in each for span in spans_read(loop)] for each in loops]
    read_by_passes[-1].extend((place.base, place.base + 1) for place in (step.loops.loss, *step.loops.outputs))
    read_by_wide = [span for run in (*order.wide[1:], *order.sinks) for span in spans_read(run.loop)]
    kept, at = Kept([], [[] for _ in passes], [[] for _ in passes]), step.workspace
    for span in _joined([*wide, *(span for each in passes for span in each)], read_by_wide):
        by_wide = [number for number, computed_by_loop in enumerate(wide) if meets(span, [computed_by_loop])]
        is_read = meets(span, read_by_wide)
        if len(passes) == 1 and not by_wide and not is_read:
            continue  # the usual case: one pass computes and reads it
        computed = [number for number, each in enumerate(passes) if meets(span, each)]
        read = [number for number, each in enumerate(read_by_passes) if meets(span, each)]
        saved = {number for number in computed if is_read or max(read, default=0) > number}
        # Pass n follows wide loop n. What a pass saves can be taken from the next pass on, and must be taken by a pass
        # that saves the rest of the span.
        first = min([*by_wide, *(number + 1 for number in computed)])
        taken = {number for number in (*read, *saved) if number >= first}
        if by_wide or saved:
            usual, size = Place(span[0]), span[1] - span[0]
            place = Place(at, step.apart(size))
            kept.own.append(Own(span, place))
            for number in taken:
                kept.takes[number].append(steps.Copy(usual, place, size))
            for number in saved:
                kept.saves[number].append(steps.Copy(place, usual, size))
            at += count * place.per_row
    step, _ = step.with_area("kept", at - step.workspace)
    return step, kept


def _loops_of(step: Step, order: Order) -> list[list[Loop]]:
    """The loops of each pass."""
    *earlier, last = order.passes
    last = [*last, *step.routines["gradients"], *order.small]
    return [[run.loop for run in runs] for runs in (*earlier, last)]


def _joined(computed: Sequence[Span], read_by_wide: Sequence[Span]) -> Iterator[Span]:
    """The computed spans, joined where they overlap, or where an operand of a wide loop reads several."""
    spans = sorted((*computed, *(span for span in read_by_wide if meets(span, computed))))
    while spans:
        start, stop = spans.pop(0)
        while spans and spans[0][0] < stop:
            stop = max(stop, spans.pop(0)[1])
        yield start, stop


def _of_pair(step: Step, pair: Pair, sums: Run, sink: Run, x: Place) -> tuple[Step, Program, Program]:
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
        steps.ListRows(x),
        steps.If(Fact.EVERY_INPUT_OF_ROWS, (steps.Perform(values),), (steps.Perform(live),)),
    )
    last = steps.If(Fact.EVERY_INPUT_OF_ROWS, (steps.Perform(sinks),), (steps.TurnLists(), steps.Perform(turned)))
    return step, first, (last,)


def _routine(step: Step, name: str, runs: Sequence[Run]) -> tuple[Step, Program]:
    """Add a routine, unless it is empty, and return the program that runs it."""
    return (step.with_routine(name, runs), (steps.Perform(name),)) if runs else (step, ())


def _inputs(step: Step, loops: Sequence[Loop], x: Place, pair: Pair) -> Program:
    """Copy the inputs of a row, if the loops of its pass read any: those around the pair's."""
    if not any(reads(loop, (0, step.loops.inputs)) for loop in loops):
        return ()
    start, stop = pair.inputs
    after = steps.Copy(Place(stop), Place(x.base + stop, x.per_row), step.loops.inputs - stop)
    return tuple(copy for copy in (steps.Copy(Place(0), x, start), after) if copy.size)
