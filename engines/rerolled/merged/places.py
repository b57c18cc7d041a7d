"""Steps -> their loops in common areas, with parameters and gradients where the caller keeps them.

A step copies the parameters into its own workspace. Merged loops use the caller's buffers instead: `x`, `p` and `y` are
areas, and gradients are added to `q`. The caller keeps the parameters in the order of the largest
graph's loops, gaps included, so the loops of each graph find theirs by moving whole operands.

Example: the largest graph reads 16 rows of a matrix at p[0] to p[255], and a bias at p[256]. A graph that reads 3 of
these rows has them at p[0] to p[47] in its own workspace, and the bias at p[48]. Its operand p[48] moves to p[256].
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Optional

from zoomgrad.engines.rerolled.recover.groups import Phase
from zoomgrad.engines.rerolled.recover.loops import VECTOR, Access, Area, Loop, Operand, Segment, Table
from zoomgrad.engines.rerolled.recover.nest import nests
from zoomgrad.engines.rerolled.recover.sums import IDENTITY
from zoomgrad.engines.rerolled.step.step import Step

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.recover.sums import Ints

NONE = -1
"""Marks a gap in an order of parameters, and a place without a parameter."""
DIRECT = "xpqy"
"""Areas that are buffers of the caller."""


class Unmergeable(Exception):
    """A step whose loops can't run in common areas. The message says why."""


def common_areas(steps: Sequence[Step], order: Order) -> tuple[Area, ...]:
    """Areas that are large enough for every step. The caller's buffers come first."""
    parameters = len(order.parameters)
    outputs = max(len(step.loops.outputs) for step in steps)
    sizes = {"x": max(step.loops.inputs for step in steps), "p": parameters, "q": parameters, "y": outputs}
    for name in "vgu":
        sizes[name] = max(area.stop - area.start for step in steps for area in step.areas if area.name == name)
    areas: list[Area] = []
    for name, size in sizes.items():
        start = areas[-1].stop if areas else 0
        areas.append(Area(name, start, start + steps[0].whole_vectors(size)))
    return tuple(areas)


def in_common_areas(steps: Sequence[Step], areas: Sequence[Area], order: Order) -> list[tuple[list[Loop], int]]:
    """The loops of each step, and the place of its loss. The outputs are loops too, at the end of the forward pass.

    Loops may write to gaps of `q`. Raises Unmergeable.
    """
    found = []
    moving: Optional[_Moving] = None
    for step in steps:
        if step.skips or any(not run.is_plain for runs in step.routines.values() for run in runs):
            raise Unmergeable("the step is rearranged")
        if not isinstance(step.loops.loss, Access):
            raise Unmergeable("the loss is a number")
        if not moving or not moving.also_moves(step):
            moving = _Moving(step, areas, order)
        loops = [moving.loop(loop) for loop in step.loops.loops]
        forward = sum(loop.phase == Phase.FORWARD for loop in loops)
        loops[forward:forward] = moving.outputs(step.loops.outputs)
        found.append((loops, moving.access(step.loops.loss, (), ()).base))
    return found


class _Moving:
    """Moves the operands of a step, and of others with the same places. It moves a loop that they share once."""

    def __init__(self, step: Step, areas: Sequence[Area], order: Order) -> None:
        self.step = step
        self.areas = {area.name: area for area in areas}
        self.gaps = frozenset(order.gaps)
        self.moved = order.place[index_of_places(step)]
        """Place of a parameter in the step's area -> place in the caller's order, or NONE."""
        self.loops: dict[int, tuple[Loop, Loop]] = {}
        """Id of a loop -> the loop, which so keeps its id, and the moved one."""

    def also_moves(self, step: Step) -> bool:
        """Whether another step has the same places."""
        return step.areas == self.step.areas and step.loops.copies is self.step.loops.copies

    def loop(self, loop: Loop) -> Loop:
        """The loop in the common areas."""
        if id(loop) not in self.loops:
            self.loops[id(loop)] = loop, self._moved(loop)
        return self.loops[id(loop)][1]

    def _moved(self, loop: Loop) -> Loop:
        segments = tuple(
            Segment(s.template, s.counts, tuple(self.operand(operand, loop.counts, s.counts) for operand in s.operands))
            for s in loop.segments
        )
        target = self.access(loop.target, loop.counts, ())
        room = loop.room
        if loop.phase == Phase.SINK and loop.counts:
            beyond = target.places(loop.counts[:-1])[:, None] + range(loop.counts[-1], room)
            if not self.gaps.issuperset((beyond - self.areas["q"].start).ravel().tolist()):
                room = loop.counts[-1]
        return Loop(loop.phase, loop.counts, target, room, segments)

    def operand(self, operand: Operand, lanes: Sequence[int], terms: Sequence[int]) -> Operand:
        if isinstance(operand, Table):
            return self.table(operand)
        return self.access(operand, lanes, terms) if isinstance(operand, Access) else operand

    def access(self, access: Access, lanes: Sequence[int], terms: Sequence[int]) -> Access:
        """The access in the common area of the same name."""
        area = self.step.area_of(access.base)
        if area.name not in self.areas:
            raise Unmergeable(f"an operand is in area {area.name}")
        offset = access.base - area.start
        first, stop = access.extent(lanes, terms)
        if first < area.start or stop > area.stop:
            raise Unmergeable("an operand's places are in several areas")
        if area.name in "pq":
            places = access.places(lanes, terms) - area.start
            shifts = self.moved[places] - places
            if (self.moved[places] == NONE).any() or (shifts != shifts[0]).any():
                raise Unmergeable("an operand's parameters are not in the caller's order")
            offset += int(shifts[0])
        return Access(self.areas[area.name].start + offset, access.lanes, access.terms)

    def table(self, table: Table) -> Table:
        """The table with places in the common areas."""
        area = self.step.area_of(int(table.places.min()))
        if int(table.places.max()) >= area.stop or area.name in "pq" or area.name not in self.areas:
            raise Unmergeable("a table of places is not in one area, or among the parameters")
        return Table(table.places - area.start + self.areas[area.name].start)

    def outputs(self, outputs: Sequence[Operand]) -> list[Loop]:
        """Loops that copy the outputs to `y`."""
        import numpy as np

        places = [self.access(output, (), ()).base for output in outputs if isinstance(output, Access)]
        if len(places) < len(outputs):
            raise Unmergeable("an output is a number")
        found = []
        # Two places of any areas are equally far apart, but graphs differ in that distance.
        for _, group in itertools.groupby(enumerate(places), lambda output: self._area_of(output[1])):
            theirs, ours = np.array(list(group)).T
            for start, counts, strides in nests(np.stack([theirs, ours])):
                source = Access(int(ours[start]), tuple(stride for _, stride in strides))
                target = Access(self.areas["y"].start + int(theirs[start]), tuple(stride for stride, _ in strides))
                inner = counts[-1] if counts else 1
                found.append(Loop(Phase.FORWARD, counts, target, inner, (Segment(IDENTITY, (), (source,)),)))
        return found

    def _area_of(self, place: int) -> str:
        return next(name for name, area in self.areas.items() if area.start <= place < area.stop)


def index_of_places(step: Step) -> Ints:
    """Place in the step's area of parameters -> index of the parameter, or NONE."""
    import numpy as np

    area = step.area("p")
    index: Ints = np.full(area.stop - area.start, NONE)
    for copy in step.loops.copies:
        index[copy.place.places(copy.counts) - area.start] = copy.parameter.places(copy.counts)
    return index


class Order:
    """The order of parameters in the caller's buffers: that of a step's area, with its gaps, then those it lacks.

    At the end is another gap, because a vector may reach beyond the last parameter.
    """

    def __init__(self, step: Step) -> None:
        import numpy as np

        found = index_of_places(step).tolist()
        self.parameters = [*found, *step.loops.unused, *[NONE] * VECTOR]
        """Place -> index of the parameter, or NONE."""
        self.place: Ints = np.full(step.loops.parameters + 1, NONE)
        """Index of a parameter -> its place. The last entry is for NONE."""
        for place, index in enumerate(self.parameters):
            if index != NONE:
                self.place[index] = place

    @property
    def gaps(self) -> list[int]:
        """The places that hold no parameter."""
        return [place for place, index in enumerate(self.parameters) if index == NONE]
