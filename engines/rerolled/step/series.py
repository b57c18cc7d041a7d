"""Series: consecutive loops that differ only in their places and counts, so that one nest in rounds can run them.

A network that attends to all earlier positions has such loops, one for each position, and so does any chain of equal
operations, such as the largest of 27 numbers. The listing keeps all loops, and `rearrange/in_rounds.py` finds series
among them. Every round runs the same `rounds` of loops, in the listing's order, so no bit can change.

A series has one loop for each loop of a round. The outermost lane count is the rounds, so places move as they do from
lane to lane, and other counts may change from round to round.

Example: the loops

    5: for i<2: v[8 + i] = sum(t<2: x[t] * v[t + i])
    6: for i<2: v[16 + i] = sum(t<3: x[t] * v[t + i])
    7: for i<2: v[24 + i] = sum(t<4: x[t] * v[t + i])

are a series of 3 rounds of one loop: `for i<3 j<2: v[8 + 8*i + j] = sum(t<2 + i: x[t] * v[t + j])`. Its term count is
`Count((2, 3, 4))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Optional

from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Operand, Phase, affine
from zoomgrad.engines.rerolled.recover.nest import Stride, stride_of


class Count(int):
    """A count that changes from round to round. As an int, it is the first round's count."""

    of_rounds: tuple[int, ...]
    change: Stride
    """The same from round to round, or the change from the first round to each round."""

    def __new__(cls, of_rounds: tuple[int, ...]) -> Count:
        made = super().__new__(cls, of_rounds[0])
        made.of_rounds = of_rounds
        made.change = stride_of(of_rounds)
        return made

    def __format__(self, _: str) -> str:
        return affine(int(self), [self.change])


def kind(loop: Loop) -> Optional[tuple[Any, ...]]:
    """What the loops of a series have in common; None if the loop can't be in one.

    Only the outermost count of terms may change from round to round, so that pointers move by constants.
    """
    if loop.phase == Phase.SINK or not loop.counts:
        return None
    parts: list[Any] = []
    for segment in loop.segments:
        # 0.0 and -0.0 are equal numbers, but different texts.
        operands = (o._replace(base=0) if isinstance(o, Access) else repr(o) for o in segment.operands)
        parts.append((segment.template, len(segment.counts), segment.counts[1:], *operands))
    return (loop.phase, len(loop.counts), loop.target.lanes, *parts)


def over_rounds(loops: Sequence[Loop]) -> Loop:
    """One loop over all rounds. loops: that of each round, all of one kind."""
    counts = tuple(map(_count, zip(*(loop.counts for loop in loops))))
    target = _moved([loop.target for loop in loops])
    assert isinstance(target, Access)
    rooms = tuple(loop.room for loop in loops)
    # Rounds with the same lanes are written in the same vectors, so the least room counts.
    room = Count(rooms) if isinstance(counts[-1], Count) else min(rooms)
    segments = []
    for of_rounds in zip(*(loop.segments for loop in loops)):
        of_terms = tuple(map(_count, zip(*(segment.counts for segment in of_rounds))))
        operands = tuple(map(_moved, zip(*(segment.operands for segment in of_rounds))))
        segments.append(of_rounds[0]._replace(counts=of_terms, operands=operands))
    return replace(loops[0], counts=(len(loops), *counts), target=target, room=room, segments=tuple(segments))


def width_in_rounds(lanes: Count, room: int, widest: int) -> int:
    """The widest vector of which whole ones cover the lanes of every round, and no more than its room."""
    assert isinstance(room, Count)
    width = widest
    while width > 1 and any(-(-inner // width) * width > fits for inner, fits in zip(lanes.of_rounds, room.of_rounds)):
        width //= 2
    return width


def _count(of_rounds: tuple[int, ...]) -> int:
    return Count(of_rounds) if len(set(of_rounds)) > 1 else of_rounds[0]


def _moved(of_rounds: Sequence[Operand]) -> Operand:
    """An operand with the rounds as its outermost lanes."""
    first = of_rounds[0]
    if isinstance(first, float):
        return first
    bases = [operand.base for operand in of_rounds if isinstance(operand, Access)]
    return first._replace(lanes=(stride_of(bases), *first.lanes))
