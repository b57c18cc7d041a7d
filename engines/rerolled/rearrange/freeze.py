"""Step -> a part of it: frozen, with a forward pass only; or with both passes, but no training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zoomgrad.engines.rerolled.recover.loops import VECTOR, Area, Phase
from zoomgrad.engines.rerolled.step.language import Give, Take
from zoomgrad.engines.rerolled.step.step import Step


def passes_only(step: Step, *, in_place: bool = False) -> Step:
    """Keep both passes, for callers that update parameters themselves.

    in_place: whether they do so in the workspace, so that parameters and gradients stay there. Updates then cover the
    padding between gradients as well, so sinks must not write there.
    """
    passes = replace(step, programs={name: step.programs[name] for name in ("forward", "backward")}).pruned()
    if not in_place:
        return passes
    moves = [move(what) for move in (Take, Give) for what in ("parameters", "gradients")]
    sinks = [replace(run, loop=replace(run.loop, room=(1, *run.loop.counts)[-1])) for run in step.routines["sinks"]]
    return passes.with_routine("sinks", sinks).with_programs(
        **{name: tuple(part for part in program if part not in moves) for name, program in passes.programs.items()}
    )


def freeze(step: Step, weights: Sequence[float]) -> Step:
    """Keep the forward loops of a plain step, and the areas that they use. weights: the numbers of the parameters."""
    enter = tuple(part for part in step.programs["enter"] if part != Take("gradients"))
    step = step.with_programs(enter=enter, leave=(Give("inputs"), Give("outputs")))
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
