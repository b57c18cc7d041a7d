"""Loops -> the plain Step: one row at a time, with an update of every parameter after each batch."""

from __future__ import annotations

from zoomgrad.engines.rerolled.recover.loops import Loops, Phase
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import NEXT_RATE, Fact, Give, Guard, If, Perform, Run, Take, Update
from zoomgrad.engines.rerolled.step.step import Step


def plain(loops: Loops) -> Step:
    """Run rows one at a time, add up gradients, and update every parameter after each batch."""
    of_phase = {
        phase: tuple(Run(number, loop) for number, loop in enumerate(loops.loops) if loop.phase == phase)
        for phase in Phase
    }
    p = loops.area("p")
    # If an output is a parameter, give it before an update changes it.
    gives_parameters = any(p.start <= output.base < p.stop for output in loops.outputs)
    evaluate = (steps.TAKE_ROW, Perform("values"), Give("outputs"), Guard())
    forward = evaluate if gives_parameters else (steps.TAKE_ROW, Perform("values"), Guard())
    routines = {"values": of_phase[Phase.FORWARD], "gradients": of_phase[Phase.BACKWARD], "sinks": of_phase[Phase.SINK]}
    step = Step(loops, loops.areas, routines)
    take = (*([Take("numbers")] if step.reads_numbers else []), Take("parameters"))
    return step.with_programs(
        forward=(Take("inputs"), *take, Perform("values"), Give("outputs")),
        backward=(Take("gradients"), Perform("gradients"), Perform("sinks"), Give("gradients")),
        enter=(*take, Take("gradients")),
        turn=(*forward, Perform("gradients"), Perform("sinks"), If(Fact.ENDS, (NEXT_RATE, Update()))),
        evaluate=evaluate,
        leave=(
            Give("inputs"),
            *(() if gives_parameters else (Give("outputs"),)),
            Give("parameters"),
            Give("gradients"),
        ),
    )
