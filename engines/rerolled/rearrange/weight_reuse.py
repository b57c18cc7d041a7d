"""Find weights that are worth loading once for two purposes: those of the first layer, which multiply the inputs.

The first layer holds most of a network's weights, more than fit in a first-level cache, so the number of loads
determines the time of a step. One load can serve a row's update and the next row's sum (`deferred`), or the sums of
several rows while the weights stay the same (`together`). No sum changes its order.

Example: a layer of 50 neurons over 784 inputs has the forward loop `for i<50: v[i] = p[i] + sum(t<784: p[...] * x[t])`
and the sink `for i<784 j<50: q[...] += x[i] * g[j]`. They form a Pair: both run over the same 39,200 weights.
"""

from __future__ import annotations

from typing import Optional

from zoomgrad.engines.graph.expr import Apply
from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Loops, Phase
from zoomgrad.engines.rerolled.recover.templates import SLOTS
from zoomgrad.engines.rerolled.step.spans import reads
from zoomgrad.engines.rerolled.step.step import Pair

PRODUCT = Apply("mul", SLOTS[:2])

MANY = 2048
"""The smallest number of weights for which reuse pays off: half of a small first-level cache."""


def pair_of_loops(loops: Loops) -> Optional[Pair]:
    """The first such loops. The forward loop must be the first to read the weights, and read each of them once."""
    for at, sink in enumerate(loops.loops):
        of_sink = _sink(loops, sink)
        if not of_sink:
            continue
        x, factor = of_sink
        start, stop = sink.target.extent(sink.counts)
        span = (start - loops.gradient_offset, stop - loops.gradient_offset)
        number, loop = next((number, loop) for number, loop in enumerate(loops.loops) if reads(loop, span))
        (index, slot, weights), *others = reads(loop, span)
        segment = loop.segments[index]
        if (
            not others
            and loop.phase == Phase.FORWARD
            and len(loop.counts) == 1
            and weights.base == span[0]
            and sink.counts == (*segment.counts, *loop.counts)
            and sink.target.lanes == (*weights.terms, *weights.lanes)
            and segment.template == PRODUCT
            and segment.operands[1 - slot] == Access(x.base, (0,), (1,))
            and sink.room >= loop.room  # else the loop's last vector would overwrite the next row of weights
        ):
            inputs = (x.base, x.base + sink.counts[0])
            of_lane = Access(factor.base, factor.lanes[1:], (0,))
            return Pair(number, index, slot, at, inputs, span, of_lane, factor.extent(sink.counts))
    return None


def _sink(loops: Loops, sink: Loop) -> Optional[tuple[Access, Access]]:
    """The input and the other factor of a sink over at least MANY weights."""
    if sink.phase != Phase.SINK or len(sink.segments) != 1 or len(sink.counts) != 2 or sink.lanes < MANY:
        return None
    (segment,) = sink.segments
    if segment.template != PRODUCT or segment.counts:
        return None
    x, factor = segment.operands
    if not isinstance(x, Access) or not isinstance(factor, Access) or loops.area_of(x.base).name != "x":
        return None
    if loops.area_of(factor.base).name not in "gu":
        return None  # the next row overwrites inputs and values, and an update overwrites parameters
    return (x, factor) if x.lanes == (1, 0) and not factor.lanes[0] else None
