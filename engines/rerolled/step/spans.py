"""What loops read from spans of places, and which updates in place that allows."""

from __future__ import annotations

from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Loops, Phase

Span = tuple[int, int]
"""Start and stop of places in the workspace."""


def reads(loop: Loop, span: Span) -> list[tuple[int, int, Access]]:
    """The operands that may read from the span: of each, its segment's number, its slot, and itself."""
    start, stop = span
    every = ((read, read[2].extent(loop.counts, loop.segments[read[0]].counts)) for read in loop.reads())
    return [read for read, (first, end) in every if first < stop and start < end]


def allows_updates_in_place(loops: Loops) -> bool:
    """Whether each sink may update its parameters instead of adding to their gradients.

    If a sink read a parameter that another lane or sink may have updated, it would see the wrong value. So each lane of
    a sink may read the parameter that it updates, and no other.
    """
    parameters = loops.area("p")
    for loop in loops.loops:
        own = (loop.target.base - loops.gradient_offset, loop.target.lanes)
        for _, _, operand in reads(loop, (parameters.start, parameters.stop)) if loop.phase == Phase.SINK else ():
            if operand[:2] != own or any(operand.terms):
                return False
    return True
