"""Step -> a part of it: frozen, with a forward pass only; or with both passes, but no training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zoomgrad.engines.rerolled.recover.loops import VECTOR, Area, Phase
from zoomgrad.engines.rerolled.step.language import Give, Take
from zoomgrad.engines.rerolled.step.step import Step


def passes_only(step: Step) -> Step:
    """Keep both passes, for callers that update parameters themselves."""
    return replace(step, programs={name: step.programs[name] for name in ("forward", "backward")}).pruned()


def freeze(step: Step, weights: Sequence[float]) -> Step:
    """Keep the forward loops of a plain step, and the areas that they use. weights: the numbers of the parameters."""
    step = step.with_programs(enter=(Take("parameters"),), leave=(Give("inputs"), Give("outputs")))
    loops = [loop for loop in step.loops.loops if loop.phase == Phase.FORWARD]
    kept = tuple(area for area in step.areas if area.name in "xkpv")
    # The last vector may reach beyond the last value.
    areas = (*kept, Area("u", kept[-1].stop, kept[-1].stop + VECTOR))
    return replace(
        step,
        loops=replace(step.loops, loops=loops, areas=areas),
        areas=areas,
        routines={"values": step.routines["values"]},
        programs={name: step.programs[name] for name in ("forward", "enter", "evaluate", "leave")},
        weights=tuple(weights),
    )
