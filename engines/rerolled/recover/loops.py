"""The recovered loops: nests over one workspace, what every back end here is written from.

loop    = lanes target segment+      each lane starts with its first term and adds the others in order
segment = template, term counts      a stretch of each lane's terms, itself a nest
operand = number | access | table    an access is affine: base + lanes · strides + terms · strides

The workspace holds doubles: inputs, numbers, parameters, values, then a mirror of parameters and values for their
gradients, then what has no mirror. Inner lanes are padded, so that vectors fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Union

from engines.graph.expr import ATOM_PRECEDENCE, PYTHON, Expr, number
from engines.rerolled.recover.groups import Phase
from engines.rerolled.recover.nest import Stride
from engines.rerolled.recover.sums import size

if TYPE_CHECKING:
    from engines.rerolled.recover.sums import Ints


class Access(NamedTuple):
    """Where an operand lies."""

    base: int
    lanes: tuple[Stride, ...]
    """One for each of the loop's lane counts."""
    terms: tuple[Stride, ...] = ()
    """One for each of the segment's term counts."""

    def extent(self, lanes: Sequence[int], terms: Sequence[int] = ()) -> tuple[int, int]:
        """The first place that it reaches, and the one after the last."""
        reach = [
            (0, stride * (count - 1)) if isinstance(stride, int) else stride
            for stride, count in zip((*self.lanes, *self.terms), (*lanes, *terms))
        ]
        return self.base + sum(map(min, reach)), self.base + sum(map(max, reach)) + 1


class Table(NamedTuple):
    """Where an operand lies, place by place: the last resort."""

    places: Ints
    """Shape (lanes, terms), both flattened."""


Operand = Union[float, Access, Table]


class Segment(NamedTuple):
    """Terms of one template."""

    template: Expr
    """Over SLOTS."""
    counts: tuple[int, ...]
    """Outermost first; empty for a single term."""
    operands: tuple[Operand, ...]

    @property
    def terms(self) -> int:
        return math.prod(self.counts)


@dataclass(frozen=True)
class Loop:
    """Sums side by side. A sink adds to what its target holds."""

    phase: Phase
    counts: tuple[int, ...]
    """Of lanes, outermost first; empty for a single one."""
    target: Access
    room: int
    """How many inner lanes may be written: more than there are, where what follows them is padding."""
    segments: tuple[Segment, ...]

    @property
    def lanes(self) -> int:
        return math.prod(self.counts)

    @property
    def work(self) -> int:
        """Primitives that it computes."""
        return self.lanes * sum(segment.terms * (size(segment.template) + 1) for segment in self.segments)

    @property
    def looped_work(self) -> int:
        """Those of them that are computed in counted loops with affine accesses."""
        return self.lanes * sum(
            segment.terms * (size(segment.template) + 1)
            for segment in self.segments
            if self.lanes * segment.terms > 1 and not any(isinstance(o, Table) for o in segment.operands)
        )


class Copy(NamedTuple):
    """Parameters in the workspace, and which of the caller's they are."""

    counts: tuple[int, ...]
    place: Access
    parameter: Access


class Area(NamedTuple):
    """A part of the workspace."""

    name: str
    start: int
    stop: int


@dataclass(frozen=True)
class Loops:
    """Both passes, and how the workspace lies."""

    loops: list[Loop]
    areas: tuple[Area, ...]
    numbers: tuple[float, ...]
    """What the area of numbers holds."""
    copies: list[Copy]
    """All parameters, in the order of the workspace."""
    loss: Operand
    outputs: tuple[Operand, ...]
    inputs: int
    parameters: int

    @property
    def workspace(self) -> int:
        return self.areas[-1].stop

    def area(self, name: str) -> Area:
        """The area of that name."""
        return next(area for area in self.areas if area.name == name)

    @property
    def coverage(self) -> float:
        """The share of all primitives that is computed in counted loops with affine accesses."""
        work = sum(loop.work for loop in self.loops)
        return sum(loop.looped_work for loop in self.loops) / work if work else 1.0

    def lines(self) -> Iterator[str]:
        """Text form: a loop a line."""
        phase = None
        for loop in self.loops:
            if loop.phase != phase:
                phase = loop.phase
                yield f"{phase.name.lower()}:"
            yield f"  {self.line(loop)}"
        yield f"loss {self._operand(self.loss)}"
        if self.outputs:
            yield f"outputs {', '.join(map(self._operand, self.outputs))}"
        work = sum(loop.work for loop in self.loops)
        yield f"{self.coverage:.2%} of {work:,} primitives in loops"

    def line(self, loop: Loop) -> str:
        """A loop in text form."""
        sums = [self._segment(segment) for segment in loop.segments]
        lanes = "".join(f" {name}<{count}" for name, count in zip(LANE_NAMES, loop.counts))
        sign = "+=" if loop.phase == Phase.SINK else "="
        target = self._operand(loop.target)
        return f"{f'for{lanes}: ' if lanes else ''}{target} {sign} {' + '.join(sums)}"

    def _segment(self, segment: Segment) -> str:
        leaves = {str(slot): (self._operand(operand), ATOM_PRECEDENCE) for slot, operand in enumerate(segment.operands)}
        text, binds = PYTHON.spell(segment.template, leaves)
        if segment.counts:
            over = ", ".join(f"{name}<{count}" for name, count in zip(TERM_NAMES, segment.counts))
            return f"sum({over}: {text})"
        return text if binds else f"({text})"

    def _operand(self, operand: Operand) -> str:
        if isinstance(operand, float):
            return number(operand)[0]
        if isinstance(operand, Table):
            area = self.area_of(int(operand.places.flat[0]))
            return f"{area.name}[{operand.places.size} places]"
        area = self.area_of(operand.base)
        return f"{area.name}[{affine(operand.base - area.start, operand.lanes, operand.terms)}]"

    def area_of(self, place: int) -> Area:
        """The area that a place is in."""
        return next(area for area in self.areas if area.start <= place < area.stop)


LANE_NAMES, TERM_NAMES = "ijkl", "tuvw"


def affine(
    base: int,
    lanes: Sequence[Stride],
    terms: Sequence[Stride] = (),
    table: Callable[[tuple[int, ...], str], str] = lambda offsets, name: f"at({name})",
) -> str:
    """An address as C and people write it: `8 + 56*t + i`. table: how an offset from a list is written."""
    parts = [str(base)] if base else []
    for strides, names in ((lanes, LANE_NAMES), (terms, TERM_NAMES)):
        for stride, name in zip(strides, names):
            if isinstance(stride, tuple):
                parts += ["+", table(stride, name)]
            elif stride:
                times = "" if abs(stride) == 1 else f"{abs(stride)}*"
                parts += ["-" if stride < 0 else "+", f"{times}{name}"]
    return " ".join(parts).removeprefix("+ ") if parts else "0"
