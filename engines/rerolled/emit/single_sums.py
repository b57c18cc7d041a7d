"""Loop -> simpler loops: a single sum becomes a loop over one lane.

The loops of a series become one loop, whose outermost lane count is the rounds, so that places move as they do from
lane to lane. Example: `for n<3 i<2: v[8 + 8*n + i] = sum(t<2 + n: x[t] * v[t + i])` becomes a loop with the lane counts
(3, 2), with the target 8 + 8*n + i, and with one term count, which is `Count(2, 1)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Union

from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Operand, Segment
from zoomgrad.engines.rerolled.recover.nest import Stride
from zoomgrad.engines.rerolled.step.series import Repeated


def is_listed(loop: Loop, lane: int) -> bool:
    """Whether the target or an operand lists the offsets of that lane count."""
    accesses = [loop.target, *(o for s in loop.segments for o in s.operands if isinstance(o, Access))]
    return any(isinstance(access.lanes[lane], tuple) for access in accesses)


def with_a_lane(loop: Loop) -> Loop:
    """Convert a single sum to a loop over one lane."""

    def widen(operand: Operand) -> Operand:
        return Access(operand.base, (0,), operand.terms) if isinstance(operand, Access) else operand

    segments = tuple(Segment(s.template, s.counts, tuple(map(widen, s.operands))) for s in loop.segments)
    return Loop(loop.phase, (1,), Access(loop.target.base, (1,)), loop.room, segments)


class Count(int):
    """A count that changes from round to round. As an int, it is the first round's count."""

    change: Stride

    def __new__(cls, first: int, change: Stride) -> Count:
        """change: from round to round, or for each round from the first one."""
        made = super().__new__(cls, first)
        made.change = change
        return made


def loop_in_rounds(repeated: Repeated) -> Loop:
    """The loop over all rounds, with the least room."""
    loop, changes = repeated.loop, iter(repeated.changes)
    next(changes)  # of the room
    target = _moved(loop.target, changes)
    counts = [_changed(count, changes) for count in loop.counts]
    segments = []
    for segment in loop.segments:
        terms = tuple([_changed(count, changes) for count in segment.counts])
        operands = tuple([_moved(operand, changes) for operand in segment.operands])
        segments.append(segment._replace(counts=terms, operands=operands))
    assert isinstance(target, Access)
    rounds = (repeated.rounds, *counts)
    return replace(loop, counts=rounds, target=target, room=repeated.least_room, segments=tuple(segments))


def has_one_nest(repeated: Repeated) -> bool:
    """Whether pointers move by constants: only the outermost count of terms may change from round to round."""
    loop = loop_in_rounds(repeated)
    return not any(isinstance(count, Count) for segment in loop.segments for count in segment.counts[1:])


def _moved(operand: Operand, changes: Iterator[Stride]) -> Operand:
    return operand._replace(lanes=(next(changes), *operand.lanes)) if isinstance(operand, Access) else operand


def _changed(count: int, changes: Iterator[Stride]) -> Union[int, Count]:
    change = next(changes)
    return Count(count, change) if change else count
