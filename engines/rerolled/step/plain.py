"""Loops -> the plain Step: one row at a time, with an update of every parameter after each batch."""

from __future__ import annotations

from zoomgrad.engines.rerolled.recover.loops import Loops, Phase
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import NEXT_RATE, Fact, Give, Guard, If, Perform, Run, Take, Update
from zoomgrad.engines.rerolled.step.step import Step


def plain(loops: Loops) -> Step:
    """Run rows one at a time, add up gradients, and update every parameter after each batch."""
    routines = {
        name: tuple(Run(number, loop) for number, loop in enumerate(loops.loops) if loop.phase == phase)
        for phase, name in zip(Phase, ("values", "gradients", "sinks"))
    }
    values, gradients = Perform("values"), (Perform("gradients"), Perform("sinks"))
    gives = (Give("outputs"),)
    p = loops.area("p")
    # If an output is a parameter, give it before an update changes it.
    gives_parameters = any(p.start <= output.base < p.stop for output in loops.outputs)
    in_turn, in_leave = (gives, ()) if gives_parameters else ((), gives)
    step = Step(loops, loops.areas, routines)
    take = (*([Take("numbers")] if step.reads_numbers else []), Take("parameters"))
    return step.with_programs(
        forward=(Take("inputs"), *take, values, *gives),
        backward=(Take("gradients"), *gradients, Give("gradients")),
        enter=(*take, Take("gradients")),
        turn=(steps.TAKE_ROW, values, *in_turn, Guard(), *gradients, If(Fact.ENDS, (NEXT_RATE, Update()))),
        evaluate=(steps.TAKE_ROW, values, *gives, Guard()),
        leave=(Give("inputs"), *in_leave, Give("parameters"), Give("gradients")),
    )
