"""Loops -> loops: copy a matrix with its rows and columns exchanged, where products with it could not use vectors.

A layer reads its matrix column by column in the forward pass, and row by row for the gradients of its inputs. Its
places suit the forward pass. In the backward pass, the lanes of a sum are then a row apart, so each is computed alone.
If the sums of several rows read the same matrix, one copy lets all of them use vectors. Example:

    for i<9 j<64: g[64*i + j] = sum(t<16: p[16*j + t] * g[1000 + 16*i + t])

becomes

    for i<16 j<64: transposed[64*i + j] = p[16*j + i]
    for i<9 j<64: g[64*i + j] = sum(t<16: transposed[j + 64*t] * g[1000 + 16*i + t])
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from zoomgrad.engines.rerolled.recover.groups import Phase
from zoomgrad.engines.rerolled.recover.loops import VECTOR, Access, Area, Loop, Segment
from zoomgrad.engines.rerolled.recover.sums import IDENTITY

AREA = "transposed"
MOST_COUNTS = 3
"""Nests of terms that are deeper would need more lanes than a loop has."""


class Transposed:
    """The copies of several graphs, in one area. Graphs that copy the same matrix copy it to the same place."""

    def __init__(self, areas: Sequence[Area]) -> None:
        self._parameters = next(area for area in areas if area.name == "p")
        self._start = areas[-1].stop
        self._size = 0
        self._places: dict[tuple[object, ...], int] = {}
        self._found: dict[int, tuple[Loop, list[Loop]]] = {}
        """Id of a loop -> the loop, which so keeps its id, and the loops in its place. Graphs share loops."""

    @property
    def area(self) -> Area:
        """The area that holds all copies."""
        return Area(AREA, self._start, self._start + self._size)

    def loops(self, loops: Sequence[Loop]) -> Iterator[Loop]:
        """The loops of a graph, with copies before the loops that read them."""
        for loop in loops:
            if loop.phase != Phase.BACKWARD or len(loop.counts) < 2:
                yield loop
                continue
            if id(loop) not in self._found:
                self._found[id(loop)] = loop, list(self._with_copies(loop))
            yield from self._found[id(loop)][1]

    def _with_copies(self, loop: Loop) -> Iterator[Loop]:
        """A loop of the backward pass, after the copies that it reads."""
        segments = list(loop.segments)
        for at, segment in enumerate(segments):
            for slot, operand in enumerate(segment.operands):
                if isinstance(operand, Access) and self._pays(loop, segment, operand):
                    copy, moved = self._copied(loop, segment, operand)
                    yield copy
                    operands = (*segment.operands[:slot], moved, *segment.operands[slot + 1 :])
                    segments[at] = segment._replace(operands=operands)
        yield Loop(loop.phase, loop.counts, loop.target, loop.room, tuple(segments))

    def _pays(self, loop: Loop, segment: Segment, operand: Access) -> bool:
        """Whether a copy of this operand lets the loop use vectors, and serves several rows."""
        others = [o for s in loop.segments for o in s.operands if o is not operand and isinstance(o, Access)]
        return (
            self._parameters.start <= operand.base < self._parameters.stop
            and loop.counts[-2] > 1
            and not any(operand.lanes[:-1])
            and operand.lanes[-1] not in (0, 1)
            and all(access.lanes[-1] in (0, 1) for access in (loop.target, *others))
            and loop.target.lanes[-1] == 1
            and 0 < len(segment.counts) <= MOST_COUNTS
        )

    def _copied(self, loop: Loop, segment: Segment, operand: Access) -> tuple[Loop, Access]:
        """The loop that makes the copy, and the operand in it."""
        lanes, terms = loop.counts[-1], segment.counts
        wide = -(-lanes // VECTOR) * VECTOR
        strides = tuple(wide * math.prod(terms[at + 1 :]) for at in range(len(terms)))
        key = (operand, lanes, terms)
        if key not in self._places:
            self._places[key] = self._start + self._size
            self._size += wide * math.prod(terms)
        place = self._places[key]
        source = Segment(IDENTITY, (), (Access(operand.base, (*operand.terms, operand.lanes[-1])),))
        copy = Loop(Phase.BACKWARD, (*terms, lanes), Access(place, (*strides, 1)), wide, (source,))
        return copy, Access(place, (*[0] * (len(loop.counts) - 1), 1), strides)
