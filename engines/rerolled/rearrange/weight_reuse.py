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
from zoomgrad.engines.rerolled.step.spans import meets, span_of
from zoomgrad.engines.rerolled.step.step import Pair

PRODUCT = Apply("mul", SLOTS[:2])

MANY = 2048
"""The smallest number of weights for which reuse pays off: a third of a small first-level cache."""


def pair_of_loops(loops: Loops) -> Optional[Pair]:
    """The first such loops. The forward loop must be the first to read the weights, and read each of them once."""
    for at, sink in enumerate(loops.loops):
        of_sink = _sink(loops, sink)
        if not of_sink:
            continue
        x, factor = of_sink
        start, stop = sink.target.extent(sink.counts)
        weights_span = (start - loops.gradient_offset, stop - loops.gradient_offset)
        for number, loop in enumerate(loops.loops):
            reads = [
                (index, slot, operand)
                for index, segment in enumerate(loop.segments)
                for slot, operand in enumerate(segment.operands)
                if meets(weights_span, [span_of(operand, loop, segment)])
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
                and sink.room >= loop.room  # else the loop's last vector would overwrite the next row of weights
            ):
                inputs = (x.base, x.base + sink.counts[0])
                of_lane = Access(factor.base, factor.lanes[1:], (0,))
                return Pair(number, index, slot, at, inputs, weights_span, of_lane, factor.extent(sink.counts))
            break
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
