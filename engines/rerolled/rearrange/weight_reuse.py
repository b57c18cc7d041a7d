"""Which weights are worth loading once for two purposes: those of a first layer, which are multiplied with the inputs.

A first layer's weights are most of a network, and more than a first-level cache holds: how often they are loaded
decides how long a step takes. One load can serve a row's update and the next row's sum (`deferred`), or the sums of
several rows while the weights do not change (`together`). No sum changes its order.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

from engines.graph.expr import Apply
from engines.rerolled.recover.groups import Phase
from engines.rerolled.recover.loops import Access, Loop, Loops
from engines.rerolled.recover.sums import SLOTS
from engines.rerolled.step.spans import Span, reaches
from engines.rerolled.step.step import Step

PRODUCT = Apply("mul", SLOTS[:2])

MANY = 2048
"""From this many weights on it matters how often they are loaded: a third of a small first-level cache."""


class Pair(NamedTuple):
    """A sum of inputs times weights over lanes, and the sink of these weights: each an input times a lane's factor."""

    forward: int
    """Number of the loop."""
    segment: int
    slot: int
    """Which operand the weights are."""
    sink: int
    inputs: Span
    weights: Span
    factor: Access
    """Over the forward loop's lanes."""


def pair_of(step: Step) -> Optional[Pair]:
    """The loops that can share their loads; None where there are none, or where they do not skip the same inputs."""
    found = pair(step.loops)
    if found and step.skips:
        live = {run.number for name in ("values", "sinks") for run in step.routines[name] if run.is_live}
        if found.inputs != step.skips.inputs or not {found.forward, found.sink} <= live:
            return None
    return found


def pair(loops: Loops) -> Optional[Pair]:
    """The first such loops. The forward one must be the first to read the weights, and read each of them once."""
    for at, sink in enumerate(loops.loops):
        found = _sink(loops, sink)
        if not found:
            continue
        x, factor = found
        start, stop = sink.target.extent(sink.counts)
        weights_span = (start - loops.gradient_offset, stop - loops.gradient_offset)
        for number, loop in enumerate(loops.loops):
            reads = [
                (index, slot, operand)
                for index, segment in enumerate(loop.segments)
                for slot, operand in enumerate(segment.operands)
                if reaches(operand, loop, index, weights_span)
            ]
            if not reads:
                continue
            index, slot, weights = reads[0]
            if (
                len(reads) == 1
                and loop.phase == Phase.FORWARD
                and len(loop.counts) == 1
                and isinstance(weights, Access)
                and weights.base == weights_span[0]
                and sink.counts == (*loop.segments[index].counts, *loop.counts)
                and sink.target.lanes == (*weights.terms, *weights.lanes)
                and loop.segments[index].template == PRODUCT
                and loop.segments[index].operands[1 - slot] == Access(x.base, (0,), (1,))
                and sink.room >= loop.room  # beyond a row's lanes the loop's vectors would write to the next row
            ):
                inputs = (x.base, x.base + sink.counts[0])
                factor = Access(factor.base, factor.lanes[1:], (0,))
                return Pair(number, index, slot, at, inputs, weights_span, factor)
            break
    return None


def _sink(loops: Loops, sink: Loop) -> Optional[tuple[Access, Access]]:
    """The input and the other factor of a sink over many weights."""
    if sink.phase != Phase.SINK or len(sink.segments) != 1 or len(sink.counts) != 2 or sink.lanes < MANY:
        return None
    (segment,) = sink.segments
    if segment.template != PRODUCT or segment.counts:
        return None
    x, factor = segment.operands
    if not isinstance(x, Access) or not isinstance(factor, Access) or loops.area_of(x.base).name != "x":
        return None
    if loops.area_of(factor.base).name not in "gu":
        return None  # the next row overwrites inputs and values, and an update parameters
    return (x, factor) if x.lanes == (1, 0) and not factor.lanes[0] else None
