"""Loops -> the two loops over the weights that meet the inputs, and what may be rearranged around them.

A first layer's weights are most of a network, and more than a first-level cache holds: how often they travel decides
how long a step takes. Its forward loop and its sink can share one journey: of one row's update with the next row's sum,
or of several rows while the weights rest. No sum changes its order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Optional

from engines.graph.expr import Apply
from engines.rerolled.recover.groups import Phase
from engines.rerolled.recover.loops import Access, Loop, Loops, Segment, reaches
from engines.rerolled.recover.sums import SLOTS

PRODUCT = Apply("mul", SLOTS[:2])

MANY = 2048
"""Weights from which on it matters how often they travel: a third of a small first-level cache."""
LINE = 8
"""Doubles; what is copied begins at a multiple."""


class Pair(NamedTuple):
    """A sum of inputs times weights over lanes, and the sink of these weights: each an input times a lane's factor."""

    forward: int
    """Number of the loop."""
    segment: int
    slot: int
    """Which operand the weights are."""
    sink: int
    inputs: tuple[int, int]
    """Their start and stop."""
    factor: Access
    """Over the forward loop's lanes."""


def pair(loops: Loops) -> Optional[Pair]:
    """The first such loops. The forward one must be the first to read the weights, and read each of them once."""
    away = loops.area("q").start - loops.area("p").start
    for at, sink in enumerate(loops.loops):
        found = _sink(loops, sink)
        if not found:
            continue
        x, factor = found
        start, stop = sink.target.extent(sink.counts)
        for number, loop in enumerate(loops.loops):
            reads = [
                (index, slot, operand)
                for index, segment in enumerate(loop.segments)
                for slot, operand in enumerate(segment.operands)
                if reaches(operand, loop.counts, segment.counts, start - away, stop - away)
            ]
            if not reads:
                continue
            index, slot, weights = reads[0]
            if (
                len(reads) == 1
                and loop.phase == Phase.FORWARD
                and len(loop.counts) == 1
                and isinstance(weights, Access)
                and weights.base == start - away
                and sink.counts == (*loop.segments[index].counts, *loop.counts)
                and sink.target.lanes == (*weights.terms, *weights.lanes)
                and loop.segments[index].template == PRODUCT
                and loop.segments[index].operands[1 - slot] == Access(x.base, (0,), (1,))
                and sink.room >= loop.room  # beyond a row's lanes the loop's vectors would write to the next row
            ):
                span = (x.base, x.base + sink.counts[0])
                return Pair(number, index, slot, at, span, Access(factor.base, factor.lanes[1:], (0,)))
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
    return (x, factor) if x.lanes == (1, 0) and not factor.lanes[0] else None


class Rows(NamedTuple):
    """Several rows of inputs at once, for as long as parameters rest: the pair's loops over all of them.

    Places and strides of what each row has of its own: its inputs, the forward loop's sums, and the factors.
    """

    many: int
    inputs: tuple[int, int]
    sums: tuple[int, int]
    factors: tuple[int, int]
    stop: int
    forward: Loop
    sink: Loop


def rows_at_once(loops: Loops, found: Pair, count: int, start: int) -> Optional[Rows]:
    """`count` rows, whose copies begin at `start`; None where the loops read more that a row has of its own."""
    forward, sink = loops.loops[found.forward], loops.loops[found.sink]
    if forward.target.lanes != (1,) or found.factor.lanes != (1,):
        return None
    for at, loop in enumerate(loops.loops):
        reads = any(
            reaches(operand, loop.counts, segment.counts, *found.inputs)
            for segment in loop.segments
            for operand in segment.operands
        )
        if reads and at not in (found.forward, found.sink):
            return None  # the pair's inputs are all that is not copied for each row
    step, lanes = _whole(loops.inputs), _whole(forward.room)
    inputs, sums, factors = start, start + count * step, start + count * (step + lanes)
    segments = []
    for index, segment in enumerate(forward.segments):
        operands = []
        for slot, operand in enumerate(segment.operands):
            if not isinstance(operand, Access) or loops.area_of(operand.base).name not in "kp":
                if index != found.segment or slot == found.slot or not isinstance(operand, Access):
                    return None
                operands.append(Access(inputs + operand.base, (step, *operand.lanes), operand.terms))
            else:
                operands.append(operand._replace(lanes=(0, *operand.lanes)))
        segments.append(segment._replace(operands=tuple(operands)))
    of_rows = tuple(
        Segment(
            PRODUCT, (), (Access(inputs + row * step + found.inputs[0], (1, 0)), Access(factors + row * lanes, (0, 1)))
        )
        for row in range(count)
    )
    return Rows(
        count,
        (inputs, step),
        (sums, lanes),
        (factors, lanes),
        factors + count * lanes,
        replace(forward, counts=(count, *forward.counts), target=Access(sums, (lanes, 1)), segments=tuple(segments)),
        replace(sink, segments=of_rows),
    )


def _whole(size: int) -> int:
    return -(-size // LINE) * LINE
