"""The recovered loops, which are the result of this folder: nests over one workspace.

loops   = loop* copies                      loops in running order; the place of each parameter
loop    = lane counts, target, segment+     a sum for each lane: its first term, then the others added in order
segment = template, term counts, operand*   a stretch of each lane's terms, itself a nest
operand = number | access                   base + an offset for each lane count and term count: index · stride, or
                                            an entry of a list

Rearrangements and back ends rely on these guarantees of `layout`:

- Areas come in the order that `layout` lists, each from a multiple of VECTOR. So do blocks of more than 2 numbers. q
  and g are at one fixed distance from p and v.
- Loops are in running order, and in the order of phases. Nothing is read before it is written, and no place is written
  twice. Each parameter's gradient has at most one sink. No loop reads q.
- An operand is a number, or an access in one area. A read of one constant is a number.
- A stride may be a list of offsets. If that of terms is one, it is their only stride.
- Operands fit the slots of the template, and strides the counts. A lane adds segment by segment, in order.
- `room` is the number of inner lanes that a loop may write, to write whole vectors. Nobody uses the places beyond its
  own lanes.

It does not promise that lanes are contiguous (see `form.lies_in_vectors`), or that a loop has a lane count.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Union

from zoomgrad.engines.graph.expr import PYTHON, Apply, Expr, calls, number
from zoomgrad.engines.rerolled.recover.nest import Stride
from zoomgrad.engines.rerolled.recover.templates import size

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.recover.sums import Ints


class Unlike(Exception):
    """Parameters can't have the places that they have in other loops."""


VECTOR = 8
"""The number of doubles in the widest vector of any machine. Areas start at multiples of it."""


class Phase(IntEnum):
    """When a loop runs. Sinks come last, when no other sum still reads a parameter."""

    FORWARD = 0
    BACKWARD = 1
    SINK = 2


class Access(NamedTuple):
    """An operand in the workspace, or a target: a place for each lane and term."""

    base: int
    lanes: tuple[Stride, ...]
    """A stride for each of the loop's lane counts."""
    terms: tuple[Stride, ...] = ()
    """A stride for each of the segment's term counts."""

    def extent(self, lanes: Sequence[int], terms: Sequence[int] = ()) -> tuple[int, int]:
        """The first place of the access over these counts, and the place after the last one."""
        reach = [
            (0, stride * (count - 1)) if isinstance(stride, int) else stride
            for stride, count in zip((*self.lanes, *self.terms), (*lanes, *terms))
        ]
        return self.base + sum(map(min, reach)), self.base + sum(map(max, reach)) + 1

    def places(self, lanes: Sequence[int], terms: Sequence[int] = ()) -> Ints:
        """All places of the access, lanes outermost."""
        import numpy as np

        places = np.array([self.base])
        for count, stride in zip((*lanes, *terms), (*self.lanes, *self.terms)):
            offsets = stride * np.arange(count) if isinstance(stride, int) else np.array(stride)
            places = (places[:, None] + offsets).reshape(-1)
        return places


Operand = Union[float, Access]


class Segment(NamedTuple):
    """Consecutive terms with one template."""

    template: Expr
    """Over SLOTS."""
    counts: tuple[int, ...]
    """Outermost first; empty for a single term."""
    operands: tuple[Operand, ...]

    @property
    def terms(self) -> int:
        return math.prod(self.counts)

    @property
    def work(self) -> int:
        """The number of primitives that one lane computes."""
        return self.terms * (size(self.template) + 1)


@dataclass(frozen=True)
class Loop:
    """Sums side by side. A loop of the sink phase adds its terms to its target's value."""

    phase: Phase
    counts: tuple[int, ...]
    """Counts of lanes, outermost first; empty for a single lane."""
    target: Access
    room: int
    """The number of inner lanes that the loop may write: more than it has, if padding follows them."""
    segments: tuple[Segment, ...]

    @property
    def lanes(self) -> int:
        return math.prod(self.counts)

    @cached_property
    def calls(self) -> set[Apply]:
        """The calls of libm, each for one number at a time."""
        return {call for segment in self.segments for call in calls(segment.template)}

    def reads(self) -> Iterator[tuple[int, int, Access]]:
        """The operands in memory: of each, its segment's number, its slot, and itself."""
        for index, segment in enumerate(self.segments):
            for slot, operand in enumerate(segment.operands):
                if isinstance(operand, Access):
                    yield index, slot, operand

    def moved(self, move: Callable[[Access], Access]) -> Loop:
        """The loop with other accesses in place of its target and its operands in memory."""
        operands = [tuple(move(o) if isinstance(o, Access) else o for o in s.operands) for s in self.segments]
        segments = tuple(segment._replace(operands=moved) for segment, moved in zip(self.segments, operands))
        return replace(self, target=move(self.target), segments=segments)

    @property
    def work(self) -> int:
        """The number of primitives that the loop computes."""
        return self.lanes * sum(segment.work for segment in self.segments)


class Copy(NamedTuple):
    """A nest of parameters or outputs: their places in the workspace, and their entries in the caller's buffer.

    The last two lanes are the rows and columns of a rectangle. They have no lists.
    """

    counts: tuple[int, ...]
    place: Access
    entry: Access


class Area(NamedTuple):
    """A part of the workspace."""

    name: str
    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.start


class Workspace:
    """Areas in order, which together cover a workspace."""

    areas: tuple[Area, ...]

    @property
    def workspace(self) -> int:
        """The number of places."""
        return self.areas[-1].stop

    def area(self, name: str) -> Area:
        return next(area for area in self.areas if area.name == name)

    def area_of(self, place: int) -> Area:
        return self.areas[bisect_right(self._starts, place) - 1]

    @cached_property
    def _starts(self) -> list[int]:
        return [area.start for area in self.areas]


@dataclass(frozen=True)
class Loops(Workspace):
    """Both passes, and the areas of the workspace."""

    loops: list[Loop]
    areas: tuple[Area, ...]
    numbers: tuple[float, ...]
    """The constants that area k holds."""
    copies: list[Copy]
    """Copies of all parameters, in the order of the workspace."""
    output_copies: list[Copy]
    loss: Access
    outputs: tuple[Access, ...]
    inputs: int
    parameters: int

    @property
    def gradient_offset(self) -> int:
        """From a parameter's place to its gradient's."""
        return self.area("q").start - self.area("p").start

    def indices_and_places(self) -> tuple[Ints, Ints]:
        """The caller's index, and the place, of each parameter that the graph uses. Others have no place."""
        import numpy as np

        none = np.zeros(0, int)
        indices = np.concatenate([none, *(copy.entry.places(copy.counts) for copy in self.copies)])
        return indices, np.concatenate([none, *(copy.place.places(copy.counts) for copy in self.copies)])

    @property
    def coverage(self) -> float:
        """The share of all primitives that counted loops compute."""
        work = sum(loop.work for loop in self.loops)
        looped = (loop.lanes * s.work for loop in self.loops for s in loop.segments if loop.lanes * s.terms > 1)
        return sum(looped) / work if work else 1.0

    def lines(self) -> Iterator[str]:
        """Text form, one numbered loop per line. Places count from the start of their area."""
        phase = None
        for at, loop in enumerate(self.loops):
            if loop.phase != phase:
                phase = loop.phase
                yield f"{phase.name.lower()}:"
            yield f"  {at}: {self.line(loop)}"
        yield f"loss {self._operand(self.loss)}"
        if self.outputs:
            yield f"outputs {', '.join(map(self._operand, self.outputs))}"
        yield f"{self.coverage:.2%} of {sum(loop.work for loop in self.loops):,} primitives in loops"

    def line(self, loop: Loop, *, updates: bool = False) -> str:
        """A loop in text form. updates: whether its target is a parameter, from which it subtracts."""
        sums = " + ".join(self._segment(segment) for segment in loop.segments)
        lanes = "".join(f" {name}<{count}" for name, count in zip(LANE_NAMES, loop.counts))
        target = self._operand(loop.target)
        if updates:
            changed = f"{target} -= rate * ({sums})"
        else:
            changed = f"{target} {'+=' if loop.phase == Phase.SINK else '='} {sums}"
        return f"for{lanes}: {changed}" if lanes else changed

    def _segment(self, segment: Segment) -> str:
        leaves = {str(slot): self._operand(operand) for slot, operand in enumerate(segment.operands)}
        text, binds = PYTHON.spell(segment.template, leaves)
        if segment.counts:
            over = ", ".join(f"{name}<{count}" for name, count in zip(TERM_NAMES, segment.counts))
            return f"sum({over}: {text})"
        return text if binds else f"({text})"

    def _operand(self, operand: Operand) -> str:
        if isinstance(operand, float):
            return number(operand)[0]
        area = self.area_of(operand.base)
        return f"{area.name}[{affine(operand.base - area.start, operand.lanes, operand.terms)}]"


LANE_NAMES, TERM_NAMES = "ijlmo", "tsrz"
"""Names of counts. In C they are variables beside the areas, so none has the name of an area, or `w`."""


def affine(
    base: int,
    lanes: Sequence[Stride],
    terms: Sequence[Stride] = (),
    table: Callable[[tuple[int, ...], str], str] = lambda offsets, name: f"at({name})",
) -> str:
    """An address as C and people write it: `8 + 56*t + i`. table: how to write an offset from a list."""
    parts = [str(base)] if base else []
    for strides, names in ((lanes, LANE_NAMES), (terms, TERM_NAMES)):
        for stride, name in zip(strides, names):
            if isinstance(stride, tuple):
                parts += ["+", table(stride, name)]
            elif stride:
                times = "" if abs(stride) == 1 else f"{abs(stride)}*"
                parts += ["-" if stride < 0 else "+", f"{times}{name}"]
    return " ".join(parts).removeprefix("+ ") if parts else "0"
