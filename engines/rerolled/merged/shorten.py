"""Loops -> the loops of graphs that begin theirs: cut the lanes and terms that a graph lacks. See `prefix.py`.

`Loops.rows` names the row of the tape that each place belongs to. The row decides the *level* of the place: how many of
the graphs, the smallest first, lack it. A lane is as high as its target, and a term as high as its highest operand. A
graph has the lanes and terms up to its own level, which must be a range of each counted loop. For graphs of 2, 3 and 4
positions:

    for i<4 j<16: v[8 + 16*i + j] = …        levels 0 0 1 2 of i, and 0 of all j
    for i<3 j<16: v[8 + 16*i + j] = …        what the graph of level 1 has, with 3 positions
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Optional, Union

from zoomgrad.engines.rerolled.merged.prefix import Prefix
from zoomgrad.engines.rerolled.recover.groups import Phase
from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Loops, Operand, Segment, Table
from zoomgrad.engines.rerolled.recover.sums import NONE

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.recover.sums import Ints


class Unlike(Exception):
    """Cutting loops does not give those of a graph. The message says why."""


class Shortening:
    """The loops of the longest tape, to be cut for others."""

    def __init__(self, loops: Loops, marks: Sequence[float], prefixes: Sequence[Prefix]) -> None:
        """loops, marks: those of the marked tape. prefixes: of all graphs, the longest among them."""
        import numpy as np

        one, rows = prefixes[0], loops.rows
        self._sizes = sorted({prefix.rows for prefix in prefixes})
        levels = np.searchsorted(self._sizes, rows, side="right")
        # Every graph has the total and the end.
        levels[(rows == one.total) | (rows >= one.end)] = 0
        *self._outputs, total = loops.outputs
        assert isinstance(total, Access)
        self._loops, self._levels, self._marks = loops, levels, marks
        self._cuts = [_Cuts(loop, levels, total.base) for loop in loops.loops]
        self._changes = [self._is_changed(loop) for loop in loops.loops]
        """Whether a graph's inputs or constants change each loop."""

    def shortened(self, prefix: Prefix) -> Loops:
        """The loops of a graph. Raises Unlike."""
        loops, tape, level = self._loops, prefix.tape, self._sizes.index(prefix.rows)
        changed = _Changed(prefix.inputs, dict(zip(self._marks, prefix.constants)))
        shorter = []
        for cuts, is_changed in zip(self._cuts, self._changes):
            loop = cuts.loop(level, prefix.additions)
            if loop:
                shorter.append(changed.loop(loop) if is_changed else loop)
        read = [loops.loss, *self._outputs[: len(tape.outputs)]]
        if any(isinstance(operand, Access) and self._levels[operand.base] > level for operand in read):
            raise Unlike("the loss or an output is the value of a row that the graph lacks")
        loss, *outputs = (changed.operand(operand) for operand in read)
        numbers = tuple(changed.constants.get(number, number) for number in loops.numbers)
        return replace(loops, loops=shorter, numbers=numbers, loss=loss, outputs=tuple(outputs), inputs=tape.inputs)

    def _is_changed(self, loop: Loop) -> bool:
        operands = [operand for segment in loop.segments for operand in segment.operands]
        return any(
            operand in self._marks if isinstance(operand, float) else _first_place(operand) < self._loops.inputs
            for operand in operands
        )


def _first_place(operand: Union[Access, Table]) -> int:
    """A place in the operand's area."""
    return operand.base if isinstance(operand, Access) else int(operand.places.flat[0])


class _Changed(NamedTuple):
    """How a graph's inputs and constants differ from those of the longest one."""

    inputs: Ints
    """Input of the longest graph -> input of this one, or NONE."""
    constants: Mapping[float, float]

    def loop(self, loop: Loop) -> Loop:
        """The loop with this graph's inputs and constants. Raises Unlike."""
        segments = (
            s._replace(operands=tuple(self.operand(operand, loop.counts, s.counts) for operand in s.operands))
            for s in loop.segments
        )
        return replace(loop, segments=tuple(segments))

    def operand(self, operand: Operand, lanes: Sequence[int] = (), terms: Sequence[int] = ()) -> Operand:
        """The operand with this graph's inputs and constants. Raises Unlike."""
        if isinstance(operand, float):
            return self.constants.get(operand, operand)
        if _first_place(operand) >= len(self.inputs):
            return operand
        places = operand.places if isinstance(operand, Table) else operand.places(lanes, terms)
        moved = self.inputs[places]
        if (moved == NONE).any():
            raise Unlike("an input is missing")
        if isinstance(operand, Table):
            return Table(moved)
        if (moved - places != moved[0] - places[0]).any():
            raise Unlike("the inputs are in another order")
        return operand._replace(base=int(moved[0]))


Ranges = tuple[tuple[int, int], ...]
"""For each counted loop, the start of what is kept, and its count."""


class _Cuts:
    """A loop, and the levels of its lanes and terms."""

    def __init__(self, loop: Loop, levels: Ints, total: int) -> None:
        """levels: of places. total: the total's place."""
        places = loop.target.places(loop.counts)
        self._loop, self._has_total = loop, bool((places == total).any())
        lanes = levels[places]
        terms = [_highest(loop, segment, levels) for segment in loop.segments]
        self._least, self._most = int(lanes.min()), max(int(each.max()) for each in (lanes, *terms))
        self._lanes: Optional[_Nest] = None
        """None if there is nothing to cut."""
        self._terms: list[_Nest] = []
        if self._least < self._most:
            self._lanes = _Nest(lanes, loop.counts)
            for segment, each in zip(loop.segments, terms):
                nest = _Nest(each.min(axis=0), segment.counts)
                # All lanes must have the same levels. Below the lane's own level, they make no difference.
                nest.fits &= bool((nest.levels[None].clip(lanes[:, None]) == each.clip(lanes[:, None])).all())
                self._terms.append(nest)
        self._known: dict[tuple[Optional[Ranges], ...], Loop] = {}

    def loop(self, level: int, additions: int) -> Optional[Loop]:
        """The loop with the lanes and terms up to a level; None if it has no such lanes. Raises Unlike.

        additions: how many terms the total lacks.
        """
        if level < self._least:
            return None
        lacking = additions if self._has_total else 0
        if lacking and self._loop.lanes > 1:
            raise Unlike("the total is a lane of a loop with others")
        if not self._lanes or level >= self._most:
            if lacking:
                raise Unlike("the total has other terms than those that were added")
            return self._loop
        lanes, terms = self._lanes.kept(level), [nest.kept(level) for nest in self._terms]
        assert lanes is not None
        cut = sum(
            segment.terms - (math.prod(count for _, count in kept) if kept is not None else 0)
            for segment, kept in zip(self._loop.segments, terms)
        )
        if all(kept is None for kept in terms):
            raise Unlike("nothing is left of a sum")
        if self._loop.phase == Phase.FORWARD and cut != lacking:
            raise Unlike("a value has other terms than on the tape")
        key = (lanes, *terms)
        if key not in self._known:
            self._known[key] = _cut(self._loop, lanes, terms)
        return self._known[key]


class _Nest:
    """The levels of all combinations of counted loops: the highest of those of each."""

    def __init__(self, levels: Ints, counts: tuple[int, ...]) -> None:
        """levels: flattened."""
        import numpy as np

        self.levels = levels
        cube = levels.reshape(counts)
        axes = range(len(counts))
        lowest = [cube.min(axis=tuple(other for other in axes if other != axis)) for axis in axes]
        self._least = int(levels.min())
        self._axes: list[list[int]] = [each.tolist() for each in lowest]
        highest = np.full(counts, self._least)
        for axis, each in zip(axes, lowest):
            np.maximum(highest, each.reshape([-1 if other == axis else 1 for other in axes]), out=highest)
        self.fits = bool((highest == cube).all())
        """Whether the levels are such maxima."""

    def kept(self, level: int) -> Optional[Ranges]:
        """What is kept of each counted loop; None if nothing is. Raises Unlike if these are not ranges."""
        if level < self._least:
            return None
        if not self.fits:
            raise Unlike("what a graph has of a loop is not a smaller nest")
        ranges = []
        for levels in self._axes:
            kept = [at for at, each in enumerate(levels) if each <= level]
            if kept[-1] - kept[0] >= len(kept):
                raise Unlike("a graph lacks something in the middle of a loop")
            ranges.append((kept[0], len(kept)))
        return tuple(ranges)


def _highest(loop: Loop, segment: Segment, levels: Ints) -> Ints:
    """The highest level of the operands of each lane and term. levels: of places."""
    import numpy as np

    highest = np.zeros((loop.lanes, segment.terms), levels.dtype)
    for operand in segment.operands:
        if isinstance(operand, Access):
            places = operand.places(loop.counts, segment.counts)
            np.maximum(highest, levels[places].reshape(highest.shape), out=highest)
        elif isinstance(operand, Table):
            np.maximum(highest, levels[operand.places], out=highest)
    return highest


def _cut(loop: Loop, lanes: Ranges, terms: Sequence[Optional[Ranges]]) -> Loop:
    """The loop with these ranges of its lanes, and of the terms of each segment. None: the segment is dropped."""
    segments = []
    for segment, kept in zip(loop.segments, terms):
        if kept is not None:
            operands = (_cut_operand(operand, lanes, kept) for operand in segment.operands)
            segments.append(Segment(segment.template, _counts(kept), tuple(operands)))
    room = loop.room
    if lanes and lanes[-1][1] < loop.counts[-1]:
        # The places of lanes that the graph lacks are free, except those of parameters' gradients.
        is_free = loop.target.lanes[-1] == 1 and loop.phase != Phase.SINK
        room = room - lanes[-1][0] if is_free else lanes[-1][1]
    target = _cut_operand(loop.target, lanes, ())
    assert isinstance(target, Access)
    return Loop(loop.phase, _counts(lanes), target, room, tuple(segments))


def _counts(ranges: Ranges) -> tuple[int, ...]:
    return tuple(count for _, count in ranges)


def _cut_operand(operand: Operand, lanes: Ranges, terms: Ranges) -> Operand:
    """The operand of these lanes and terms. Raises Unlike for a table."""
    if isinstance(operand, Table):
        raise Unlike("a table lists the places of an operand")
    if isinstance(operand, float):
        return operand
    base, strides = operand.base, []
    for stride, (start, count) in zip((*operand.lanes, *operand.terms), (*lanes, *terms)):
        if isinstance(stride, tuple):
            base += stride[start]
            stride = tuple(offset - stride[start] for offset in stride[start : start + count])
        else:
            base += stride * start
        strides.append(stride)
    return Access(base, tuple(strides[: len(lanes)]), tuple(strides[len(lanes) :]))
