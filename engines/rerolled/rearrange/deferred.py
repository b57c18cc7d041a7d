"""Deferred updates: the first layer's weights are updated in the next row's forward loop, just before they are read.

The largest sink of a row that is alone waits. The next row's forward loop then computes, weight by weight,
`p -= rate * (x_before * factor); sum += p * x`: each weight is loaded once instead of twice. Until then the inputs of
the row before are kept, and the factor stays where its backward loop left it. Whatever reads the weights earlier
settles the update first, and so does the end of the stretch.
"""

from __future__ import annotations

from dataclasses import replace

from engines.rerolled.form import Form
from engines.rerolled.rearrange import in_place
from engines.rerolled.rearrange.weight_reuse import pair_of
from engines.rerolled.recover.loops import Access, Area, Loop
from engines.rerolled.step.language import (
    DUE,
    KEPT,
    Both,
    Copy,
    Due,
    EveryInput,
    If,
    MeasureWeights,
    Not,
    Perform,
    Place,
    Program,
    Run,
    Set,
    Statement,
    rewrite,
)
from engines.rerolled.step.step import Step

VALUES = "values after the update"
SETTLE = "settle"


def defer_updates(step: Step, form: Form) -> Step:
    """Let the update of the weights that meet the inputs wait for the next row."""
    found = pair_of(step)
    if found is None or in_place.SINKS not in step.routines:
        return step
    start, stop = found.inputs
    step, before = step.with_area("before", stop - start + 1)
    sinks = step.routines[in_place.SINKS]
    waiting = next(run for run in sinks if run.number == found.sink)
    keeps = form.is_one_block(step.loops.loops[found.forward])
    due = Due(found.segment, found.slot, Access(before.start, (0,), (1,)), found.factor, keeps)
    own = f"sink {found.sink} in place"
    step = step.with_routine(VALUES, (_meet(run, found.forward, due) for run in step.routines["values"]))
    step = step.with_routine(in_place.SINKS, (run for run in sinks if run is not waiting))
    step = step.with_routine(SETTLE, [_of_the_row_before(waiting, before)])
    if step.skips:
        step = step.with_routine(own, [waiting])

    settle = If(DUE, (Perform(SETTLE), Set(DUE, False)))
    keep: Program = (Copy(Place(before.start), Place(start), stop - start),)
    if keeps:
        keep = (If(Not(KEPT), keep),)
    wait: Program = (*keep, Set(DUE, True))
    met: Program = (Perform(VALUES), Set(DUE, False), *([Set(KEPT, True)] if keeps else []))
    plain: Program = (Perform("values"), *([Set(KEPT, False)] if keeps else []))

    def change(statement: Statement) -> Program:
        if statement == Perform("values"):
            if step.skips:
                return (If(Both(DUE, EveryInput()), met, (settle, *plain)),)
            return (If(DUE, met, plain),)
        if statement == Perform(in_place.SINKS):
            # A row with zeros is updated at once: to skip them is worth more than to wait.
            waits = (If(EveryInput(), wait, (Perform(own),)),) if step.skips else wait
            return (statement, *waits)
        return (statement,)

    turn = step.programs["turn"]
    at = turn.index(Perform("values"))
    early = rewrite(turn[:at], lambda s: (settle, s) if isinstance(s, MeasureWeights) else (s,))
    return step.with_programs(
        turn=(*early, *rewrite(turn[at:], change)), leave=(If(DUE, (Perform(SETTLE),)), *step.programs["leave"])
    )


def _meet(run: Run, forward: int, due: Due) -> Run:
    """The run, with the update on its way where it is the forward loop's. It visits every input."""
    return replace(run, due=due, live_segment=None) if run.number == forward else run


def _of_the_row_before(waiting: Run, before: Area) -> Run:
    """The sink that waits, over the inputs that were kept."""
    sink: Loop = waiting.loop
    (segment,) = sink.segments
    x, factor = segment.operands
    assert isinstance(x, Access)
    kept = segment._replace(operands=(x._replace(base=before.start), factor))
    return replace(waiting, loop=replace(sink, segments=(kept,)), live_lane=None, is_before=True)
