"""The spans of places that loops read, and which updates in place they allow."""

from __future__ import annotations

from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Loops, Operand, Phase

Span = tuple[int, int]
"""Start and stop of places in the workspace."""


def span_of(operand: Operand, loop: Loop, segment: int) -> Span:
    """The span of an operand of that segment; (0, 0) for a number."""
    return (0, 0) if isinstance(operand, float) else operand.extent(loop.counts, loop.segments[segment].counts)


def reaches(operand: Operand, loop: Loop, segment: int, span: Span) -> bool:
    """Whether an operand of that segment may have a place in the span."""
    first, stop = span_of(operand, loop, segment)
    return first < span[1] and span[0] < stop


def reads(loop: Loop, span: Span) -> bool:
    """Whether the loop may read from the span."""
    return any(
        reaches(operand, loop, number, span)
        for number, segment in enumerate(loop.segments)
        for operand in segment.operands
    )


def allows_updates_in_place(loops: Loops) -> bool:
    """Whether each sink may update its parameters instead of adding to their gradients.

    If a sink read a parameter that another lane or sink may have updated, it would see the wrong value. So each lane of
    a sink may read the parameter that it updates, and no other.
    """
    parameters = loops.area("p")
    for loop in loops.loops:
        if loop.phase != Phase.SINK:
            continue
        own = (loop.target.base - loops.gradient_offset, loop.target.lanes)
        for number, segment in enumerate(loop.segments):
            for operand in segment.operands:
                is_own = isinstance(operand, Access) and operand[:2] == own and not any(operand.terms)
                if not is_own and reaches(operand, loop, number, (parameters.start, parameters.stop)):
                    return False
    return True
