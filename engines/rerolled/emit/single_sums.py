"""Loop -> simpler loops: a loop with a small table becomes single sums, and a single sum a loop over one lane."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Operand, Segment, Table

UNROLLED = 64
"""Up to this many places of a table, write them into the code instead."""


def unrolled(loop: Loop) -> Iterator[Loop]:
    """If the loop's tables are small, replace it by single sums, with the places as numbers in the code."""
    tables = [o for segment in loop.segments for o in segment.operands if isinstance(o, Table)]
    if not tables or sum(table.places.size for table in tables) > UNROLLED:
        yield loop
        return
    for lane, digits in enumerate(itertools.product(*map(range, loop.counts))):
        segments = [
            Segment(
                segment.template, (), tuple(_at(operand, lane, digits, term, steps) for operand in segment.operands)
            )
            for segment in loop.segments
            for term, steps in enumerate(itertools.product(*map(range, segment.counts)))
        ]
        target = _at(loop.target, lane, digits, 0, ())
        assert isinstance(target, Access)
        yield Loop(loop.phase, (), target, 1, tuple(segments))


def is_listed(loop: Loop, lane: int) -> bool:
    """Whether the target or an operand lists the offsets of that lane count."""
    accesses = [loop.target, *(o for s in loop.segments for o in s.operands if isinstance(o, Access))]
    return any(isinstance(access.lanes[lane], tuple) for access in accesses)


def _at(operand: Operand, lane: int, digits: Sequence[int], term: int, steps: Sequence[int]) -> Operand:
    """One place of an operand, for one lane and term."""
    if isinstance(operand, float):
        return operand
    if isinstance(operand, Table):
        return Access(int(operand.places[lane, term]), ())
    moved = sum(
        s * d if isinstance(s, int) else s[d] for d, s in zip((*digits, *steps), (*operand.lanes, *operand.terms))
    )
    return Access(operand.base + moved, ())


def with_a_lane(loop: Loop) -> Loop:
    """Convert a single sum to a loop over one lane."""

    def widen(operand: Operand) -> Operand:
        return Access(operand.base, (0,), operand.terms) if isinstance(operand, Access) else operand

    segments = tuple(Segment(s.template, s.counts, tuple(map(widen, s.operands))) for s in loop.segments)
    return Loop(loop.phase, (1,), Access(loop.target.base, (1,)), loop.room, segments)
