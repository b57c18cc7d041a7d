"""What a loop reads: the spans of places that its operands may have."""

from __future__ import annotations

from engines.rerolled.recover.loops import Loop, Operand, Table
from engines.rerolled.step.step import Span


def span_of(operand: Operand, loop: Loop, segment: int) -> Span:
    """From the first place that an operand of that segment has to the one after its last; (0, 0) for a number."""
    if isinstance(operand, float):
        return (0, 0)
    if isinstance(operand, Table):
        return int(operand.places.min()), int(operand.places.max()) + 1
    return operand.extent(loop.counts, loop.segments[segment].counts)


def reaches(operand: Operand, loop: Loop, segment: int, span: Span) -> bool:
    """Whether an operand of that segment may have a place in the span."""
    start, stop = span
    if isinstance(operand, Table):
        return bool(((operand.places >= start) & (operand.places < stop)).any())
    first, last = span_of(operand, loop, segment)
    return first < stop and start < last


def reads(loop: Loop, span: Span) -> bool:
    """Whether the loop may read from the span."""
    return any(
        reaches(operand, loop, number, span)
        for number, segment in enumerate(loop.segments)
        for operand in segment.operands
    )
