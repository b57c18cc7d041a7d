"""The spans of places that loops read, and which updates in place they allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Loops, Operand, Phase, Segment

Span = tuple[int, int]
"""Start and stop of places in the workspace."""


def span_of(operand: Operand, loop: Loop, segment: Segment) -> Span:
    """The span of an operand of that segment; (0, 0) for a number."""
    return (0, 0) if isinstance(operand, float) else operand.extent(loop.counts, segment.counts)


def spans_read(loop: Loop) -> Iterator[Span]:
    """The spans of all operands."""
    return (span_of(operand, loop, segment) for segment in loop.segments for operand in segment.operands)


def meets(span: Span, others: Iterable[Span]) -> bool:
    """Whether a span has a place in common with another one."""
    first, end = span
    return any(start < end and first < stop for start, stop in others)


def reads(loop: Loop, span: Span) -> bool:
    """Whether the loop may read from the span."""
    return meets(span, spans_read(loop))


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
        for segment in loop.segments:
            for operand in segment.operands:
                is_own = isinstance(operand, Access) and operand[:2] == own and not any(operand.terms)
                if not is_own and meets((parameters.start, parameters.stop), [span_of(operand, loop, segment)]):
                    return False
    return True
