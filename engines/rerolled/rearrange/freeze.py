"""Plain Step -> frozen Step: parameters are taken once, by `load`, and only the forward pass remains."""

from __future__ import annotations

from dataclasses import replace

from engines.rerolled.recover.groups import Phase
from engines.rerolled.recover.layout import VECTOR
from engines.rerolled.recover.loops import Area
from engines.rerolled.step.language import Take
from engines.rerolled.step.step import Step


def freeze(step: Step) -> Step:
    """Keep the forward loops, and the areas that they use."""
    loops = [loop for loop in step.loops.loops if loop.phase == Phase.FORWARD]
    kept = tuple(area for area in step.areas if area.name in "xkpv")
    # The last vector may reach beyond the last value.
    areas = (*kept, Area("u", kept[-1].stop, kept[-1].stop + VECTOR))
    taken = Take("parameters")
    forward = tuple(statement for statement in step.programs["forward"] if statement != taken)
    return replace(
        step,
        loops=replace(step.loops, loops=loops, areas=areas),
        areas=areas,
        routines={"values": step.routines["values"]},
        programs={"load": (taken,), "forward": forward},
    )
