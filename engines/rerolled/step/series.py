"""Series: consecutive loops that differ only in their places and counts, so that one nest in rounds can run them.

A network that attends to all earlier positions has such loops, one for each position, and so does any chain of equal
operations, such as the largest of 27 numbers. The listing keeps all loops, and a step says which of them form series.
Every round runs the same `period` of loops, in the listing's order, so no bit can change.

A series has one loop for each loop of a round. The outermost lane count is the rounds, so places move as they do from
lane to lane, and other counts may change from round to round.

Example: the loops

    5: for i<2: v[8 + i] = sum(t<2: x[t] * v[t + i])
    6: for i<2: v[16 + i] = sum(t<3: x[t] * v[t + i])
    7: for i<2: v[24 + i] = sum(t<4: x[t] * v[t + i])

are a series of 3 rounds of one loop: `for i<3 j<2: v[8 + 8*i + j] = sum(t<2 + i: x[t] * v[t + j])`. Its term count is
`Count(2, 1)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Optional

from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Operand, Phase, affine
from zoomgrad.engines.rerolled.recover.nest import Stride, stride_of


class Count(int):
    """A count that changes from round to round. As an int, it is the first round's count."""

    change: Stride

    def __new__(cls, first: int, change: Stride) -> Count:
        """change: the same from round to round, or the change from the first round to each round."""
        made = super().__new__(cls, first)
        made.change = change
        return made

    def __format__(self, _: str) -> str:
        return affine(int(self), [self.change])


class Repeated(NamedTuple):
    """A loop of every round."""

    loop: Loop
    """That of the first round."""
    rounds: int
    changes: tuple[Stride, ...]
    """For each of its `numbers`, the step from round to round, or a list of offsets."""

    def over_rounds(self) -> Loop:
        """The loop over all rounds, with the least room."""
        changes = iter(self.changes)
        next(changes)  # of the room
        target = _moved(self.loop.target, changes)
        counts = [_changed(count, changes) for count in self.loop.counts]
        segments = []
        for segment in self.loop.segments:
            terms = tuple([_changed(count, changes) for count in segment.counts])
            operands = tuple([_moved(operand, changes) for operand in segment.operands])
            segments.append(segment._replace(counts=terms, operands=operands))
        assert isinstance(target, Access)
        rounds = (self.rounds, *counts)
        return replace(self.loop, counts=rounds, target=target, room=min(self._in_rounds(0)), segments=tuple(segments))

    def width(self, most: int) -> int:
        """The widest vector of which whole ones cover the inner lanes of every round, and no more than its room."""
        inner = list(zip(self._in_rounds(1 + len(self.loop.counts)), self._in_rounds(0)))
        width = most
        while width > 1 and any(-(-lanes // width) * width > room for lanes, room in inner):
            width //= 2
        return width

    def _in_rounds(self, at: int) -> list[int]:
        """One of the loop's `numbers` in each round."""
        number, change = numbers(self.loop)[at], self.changes[at]
        return [number + (change * n if isinstance(change, int) else change[n]) for n in range(self.rounds)]


class Series(NamedTuple):
    """Rounds of the same loops."""

    first: int
    """The number of the first loop in the listing."""
    rounds: int
    period: tuple[Repeated, ...]

    @property
    def stop(self) -> int:
        """The number after that of the last loop."""
        return self.first + self.rounds * len(self.period)

    def __str__(self) -> str:
        return f"loops {self.first}-{self.stop - 1} in {self.rounds} rounds"


def numbers(loop: Loop) -> list[int]:
    """The numbers that may differ between rounds: room, place of the target, counts, and places of operands."""
    values = [loop.room, loop.target.base, *loop.counts]
    for segment in loop.segments:
        values += segment.counts
        values += [operand.base for operand in segment.operands if isinstance(operand, Access)]
    return values


def kind(loop: Loop) -> Optional[tuple[Any, ...]]:
    """What the loops of a series have in common; None if the loop can't be in one.

    Only the outermost count of terms may change from round to round, so that pointers move by constants.
    """
    if loop.phase == Phase.SINK or not loop.counts:
        return None
    parts = [
        # 0.0 and -0.0 are equal numbers, but different texts.
        (
            s.template,
            len(s.counts),
            s.counts[1:],
            *(o._replace(base=0) if isinstance(o, Access) else repr(o) for o in s.operands),
        )
        for s in loop.segments
    ]
    return (loop.phase, len(loop.counts), loop.target.lanes, *parts)


def series_of(loops: Sequence[Loop], first: int, rounds: int, length: int) -> Series:
    """The series of these rounds of so many loops."""
    period = []
    for at in range(first, first + length):
        every = [numbers(loops[at + n * length]) for n in range(rounds)]
        changes = tuple(stride_of([number - of_rounds[0] for number in of_rounds]) for of_rounds in zip(*every))
        period.append(Repeated(loops[at], rounds, changes))
    return Series(first, rounds, tuple(period))


def _moved(operand: Operand, changes: Iterator[Stride]) -> Operand:
    return operand._replace(lanes=(next(changes), *operand.lanes)) if isinstance(operand, Access) else operand


def _changed(count: int, changes: Iterator[Stride]) -> int:
    change = next(changes)
    return Count(count, change) if change else count
