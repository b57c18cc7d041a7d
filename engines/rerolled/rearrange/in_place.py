"""Updates in place: if every row is a batch, each sink subtracts from its parameter, and no gradient is kept.

`q += sum; p -= rate * q; q = 0` becomes `p -= rate * sum`, in one pass over the weights instead of three. The bits stay
the same because q was 0.0; only the sign of a zero may differ. See the package `step` for an example.
"""

from __future__ import annotations

from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.step.language import NEXT_RATE, Fact, If, Perform
from zoomgrad.engines.rerolled.step.spans import allows_updates_in_place
from zoomgrad.engines.rerolled.step.step import Step

SINKS = "sinks in place"


def update_in_place(step: Step, form: Form) -> Step:
    """Let a row that is alone update parameters in its sinks, if the loops allow it."""
    if not allows_updates_in_place(step.loops) or not step.routines["sinks"]:
        return step
    turn = step.programs["turn"]
    at = turn.index(Perform("sinks"))
    learn = If(Fact.ALONE, (NEXT_RATE, Perform(SINKS)), turn[at:])
    step = step.with_routine(SINKS, (run.updating(step.loops.gradient_offset) for run in step.routines["sinks"]))
    return step.with_programs(turn=(*turn[:at], learn))
