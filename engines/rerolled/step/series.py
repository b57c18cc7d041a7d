"""Series: consecutive loops that differ only in their places and counts, so that one nest in rounds can run them.

A network that attends to all earlier positions has such loops, one for each position, and so does any chain of equal
operations, such as the largest of 27 numbers. The listing keeps all loops, and a step says which of them form series.
Every round runs the same `period` of loops, in the listing's order, so no bit can change.

Example: the loops

    5: for i<2: v[8 + i] = sum(t<2: x[t] * v[t + i])
    6: for i<2: v[16 + i] = sum(t<3: x[t] * v[t + i])
    7: for i<2: v[24 + i] = sum(t<4: x[t] * v[t + i])

are a series of 3 rounds of one loop: `for n<3 i<2: v[8 + 8*n + i] = sum(t<2 + n: x[t] * v[t + i])`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Optional

from zoomgrad.engines.rerolled.recover.groups import Phase
from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Varying
from zoomgrad.engines.rerolled.recover.nest import Stride

ROUND = "n"
"""The name of a round's number."""
Listed = Callable[[Sequence[int], str], str]
"""How to write a number that a list has for each round."""


class Repeated(NamedTuple):
    """A loop of every round."""

    loop: Loop
    """That of the first round."""
    rounds: int
    changes: tuple[Stride, ...]
    """For each of its `numbers`, the step from round to round, or a list of offsets."""

    def of_round(self, n: int) -> Loop:
        """The loop of that round."""
        offsets = (change * n if isinstance(change, int) else change[n] for change in self.changes)
        return with_numbers(self.loop, [number + offset for number, offset in zip(numbers(self.loop), offsets)])

    def varying(self, listed: Listed) -> Loop:
        """The first round's loop, with the least room. Other numbers that change from round to round are Varying."""
        operands = [
            Varying(number, _rest(change, listed)) if change else number
            for number, change in zip(numbers(self.loop), self.changes)
        ]
        return with_numbers(self.loop, [self.least_room, *operands[1:]])

    @property
    def least_room(self) -> int:
        """The room that the loop has in every round."""
        change = self.changes[0]
        offsets = change if isinstance(change, tuple) else (0, change * (self.rounds - 1))
        return self.loop.room + min(offsets)

    def width(self, most: int) -> int:
        """The widest vector of which whole ones cover the inner lanes of every round, and no more than its room."""
        loops = [self.of_round(n) for n in range(self.rounds)]
        width = most
        while width > 1 and any(-(-loop.counts[-1] // width) * width > loop.room for loop in loops):
            width //= 2
        return width


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

    def loops(self) -> Iterator[Loop]:
        """All loops, as the listing has them."""
        for n in range(self.rounds):
            yield from (repeated.of_round(n) for repeated in self.period)

    def __str__(self) -> str:
        return f"loops {self.first}-{self.stop - 1} in {self.rounds} rounds"


def numbers(loop: Loop) -> list[int]:
    """The numbers that may differ between rounds: room, place of the target, counts, and places of operands."""
    values = [loop.room, loop.target.base, *loop.counts]
    for segment in loop.segments:
        values += segment.counts
        values += [operand.base for operand in segment.operands if isinstance(operand, Access)]
    return values


def with_numbers(loop: Loop, values: Iterable[int]) -> Loop:
    """The loop with other `numbers`."""
    rest = iter(values)
    room, target = next(rest), loop.target._replace(base=next(rest))
    counts = tuple(next(rest) for _ in loop.counts)
    segments = []
    for segment in loop.segments:
        terms = tuple(next(rest) for _ in segment.counts)
        operands = tuple(o._replace(base=next(rest)) if isinstance(o, Access) else o for o in segment.operands)
        segments.append(segment._replace(counts=terms, operands=operands))
    return replace(loop, room=room, target=target, counts=counts, segments=tuple(segments))


def kind(loop: Loop) -> Optional[tuple[Any, ...]]:
    """What the loops of a series have in common; None if the loop can't be in one."""
    operands = [operand for segment in loop.segments for operand in segment.operands]
    if loop.phase == Phase.SINK or not loop.counts or not all(isinstance(o, (Access, float)) for o in operands):
        return None
    parts = [
        # 0.0 and -0.0 are equal numbers, but different texts.
        (s.template, len(s.counts), *(o._replace(base=0) if isinstance(o, Access) else repr(o) for o in s.operands))
        for s in loop.segments
    ]
    return (loop.phase, len(loop.counts), loop.target.lanes, *parts)


def series_of(loops: Sequence[Loop], first: int, rounds: int, length: int) -> Series:
    """The series of these rounds of so many loops."""
    period = []
    for at in range(first, first + length):
        every = [numbers(loops[at + n * length]) for n in range(rounds)]
        period.append(Repeated(loops[at], rounds, tuple(map(_change, zip(*every)))))
    return Series(first, rounds, tuple(period))


def _rest(change: Stride, listed: Listed) -> str:
    if isinstance(change, tuple):
        return f" + {listed(change, ROUND)}"
    times = "" if abs(change) == 1 else f"{abs(change)}*"
    return f" {'-' if change < 0 else '+'} {times}{ROUND}"


def _change(of_rounds: Sequence[int]) -> Stride:
    first, second, *_ = of_rounds
    offsets = tuple(number - first for number in of_rounds)
    step = second - first
    return step if all(offset == n * step for n, offset in enumerate(offsets)) else offsets
