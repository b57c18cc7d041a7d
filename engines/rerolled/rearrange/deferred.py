"""Deferred updates: the next row's forward loop updates the first layer's weights, just before it reads them.

The sink of the first layer's weights waits, if its row is alone. The next row's forward loop then computes, weight by
weight, `p -= rate * (x_before * factor); sum += p * x`, so it loads each weight once instead of twice. Until then, the
previous row's inputs are kept, and the factor stays in its place. The end of the stretch *settles* the last update.

Updates are deferred if `weight_reuse` finds a pair of loops over at least 2,048 weights, and `in_place` allows sinks to
update. A step that skips zeros updates at once, because skipping them gains more.

Example: in a stretch of two rows that are both alone, row 1 runs its forward loop and every other sink, and sets `due`.
Row 2's forward loop updates and reads the weights, and row 2 defers in turn. `leave` settles row 2's update.
"""

from __future__ import annotations

from dataclasses import replace

from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.rearrange import in_place
from zoomgrad.engines.rerolled.rearrange.weight_reuse import pair_of_loops
from zoomgrad.engines.rerolled.recover.loops import Access
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import Due, Fact, Place, Program, Statement, rewrite
from zoomgrad.engines.rerolled.step.step import Step


def defer_updates(step: Step, form: Form) -> Step:
    """Defer the update of the weights that are multiplied by the inputs to the next row."""
    pair = pair_of_loops(step.loops)
    if pair is None or step.skips or in_place.SINKS not in step.routines:
        return step
    start, stop = pair.inputs
    step, before = step.with_area("before", stop - start + 1)
    sinks = step.routines[in_place.SINKS]
    waiting = next(run for run in sinks if run.number == pair.sink)
    due = Due(pair.segment, pair.slot, Access(before.start, (0,), (1,)), pair.factor)
    met = (replace(run, due=due) if run.number == pair.forward else run for run in step.routines["values"])
    step = step.with_routine("values after the update", met)
    step = step.with_routine(in_place.SINKS, (run for run in sinks if run is not waiting))
    # The sink that settles the update reads the kept inputs.
    settling = waiting.loop.moved(lambda a: a._replace(base=before.start) if a.base == start else a)
    assert settling != waiting.loop
    step = step.with_routine("settle", [replace(waiting, loop=settling)])
    copied = steps.Copy(Place(before.start), Place(start), stop - start)

    def change(statement: Statement) -> Program:
        if statement == steps.Perform("values"):
            return (steps.If(Fact.DUE, (steps.Perform("values after the update"), steps.CLEAR_DUE), (statement,)),)
        if statement == steps.Perform(in_place.SINKS):
            return (statement, copied, steps.SET_DUE)
        return (statement,)

    return step.with_programs(
        turn=rewrite(step.programs["turn"], change),
        leave=(steps.If(Fact.DUE, (steps.Perform("settle"),)), *step.programs["leave"]),
    )
