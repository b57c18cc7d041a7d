"""Whole batches: if the rows taken together are a batch, the largest sink updates its weights in place.

It keeps each gradient in a register until all rows are added, and then subtracts `rate * sum / batch`. So it writes no
gradient, and the update has nothing left to do for these weights: of three passes over them, one is left.
The bits stay the same because the gradients were zero before.

Example: a turn of 104 rows that are a whole batch ends with `next rate`, `run loop 12 of 104 rows in place` and `update
all but loop 12`. Other turns run loop 12, and then update all parameters.
"""

from __future__ import annotations

from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.recover.loops import Loop, Loops, Phase
from zoomgrad.engines.rerolled.step.language import NEXT_RATE, Fact, If, Perform, Update
from zoomgrad.engines.rerolled.step.spans import allows_updates_in_place
from zoomgrad.engines.rerolled.step.step import Step

MANY = 50_000
"""The fewest weights worth another sink to compile: with their gradients, they do not fit a second-level cache."""


def update_with_whole_batches(step: Step, form: Form) -> Step:
    """Let the largest sink update its weights, unless the step skips inputs, or other sinks' weights lie among them."""
    if "together" not in step.programs or step.skips:
        return step
    *before, sinks, ends = step.programs["together"]
    if not isinstance(sinks, Perform) or not isinstance(ends, If) or not allows_updates_in_place(step.loops):
        return step
    (sink,) = step.routines[sinks.routine]
    if sink.loop.lanes < MANY or _has_others_among(step.loops, sink.loop):
        return step
    own = f"{sinks.routine} in place"
    step = step.with_routine(own, [sink.updating(step.loops.gradient_offset)])
    whole = If(ends.condition, (NEXT_RATE, Perform(own), Update(sink.number)))
    choice = If(Fact.ALONE, (whole,), (sinks, ends))
    return step.with_programs(together=(*before, choice))


def _has_others_among(loops: Loops, sink: Loop) -> bool:
    """Whether another sink has places between the first and the last one of a sink, which `update all but` leaves out.

    This happens if two kinds of neurons alternate: each kind has its own sink, for every second row of the next layer's
    weights.
    """
    start, stop = sink.target.extent(sink.counts)
    others = (loop for loop in loops.loops if loop.phase == Phase.SINK and loop.target.base != sink.target.base)
    spans = (loop.target.extent(loop.counts) for loop in others)
    return any(first < stop and start < end for first, end in spans)
