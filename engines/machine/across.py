"""Sums whose terms lie side by side, while their lanes are apart: terms in vectors, then a transposition.

Each lane adds in the order of its terms, so vectors of terms can't be added across. Example: `for i<4: g[i] =
sum(t<4: p[8*i + t] * v[t])` in vectors of 4. The terms of a lane are one product of vectors; these four *rows* are
transposed, so that each *column* has one term of all lanes, and the columns are added in order:

    row 0: p[0] * v[0], p[1] * v[1], …          column 0: p[0] * v[0], p[8] * v[0], p[16] * v[0], p[24] * v[0]
    row 1: p[8] * v[0], p[9] * v[1], …          column 1: p[1] * v[1], p[9] * v[1], …

A product for each term and lane takes 16 multiplications of numbers; this takes 4 of vectors and 8 permutations. If a
count is no multiple of the width, the last window of terms overlaps the one before, and only its last columns count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from zoomgrad.engines.machine.block import Block, Source, Terms
from zoomgrad.engines.machine.encode import Vec
from zoomgrad.engines.machine.expression import Operand
from zoomgrad.engines.rerolled.form import Vector
from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Segment
from zoomgrad.engines.rerolled.step.language import Run
from zoomgrad.engines.rerolled.step.series import Count

SHUFFLE = "vshuff64x2"
STRAIGHT_WINDOWS = 1
"""Up to this many windows of terms are written one after the other."""


def widths_across(run: Run, loop: Loop, widest: int) -> list[int]:
    """The widths of vectors that cover the inner lanes exactly; empty if the terms don't lie side by side."""
    lanes = loop.counts[-1]
    summed = [segment for segment in loop.segments if segment.counts]
    if (
        run.rows > 1
        or run.is_live
        or run.due
        or loop.target.lanes[-1] != 1
        or isinstance(lanes, Count)
        or not summed
        or not all(map(_is_across, loop.segments))
    ):
        return []
    width = widest
    while width > min(segment.counts[0] for segment in summed):
        width //= 2
    widths = []
    while lanes and width > 1:
        while width > lanes:
            width //= 2
        widths.append(width)
        lanes -= width
    return widths


def _is_across(segment: Segment) -> bool:
    accesses = [operand for operand in segment.operands if isinstance(operand, Access)]
    if not segment.counts:
        return all(access.lanes[-1] in (0, 1) for access in accesses)
    if len(segment.counts) > 1 or isinstance(segment.counts[0], Count):
        return False
    return all(isinstance(access.lanes[-1], int) for access in accesses) and {
        access.terms[-1] for access in accesses if access.terms[-1] != 0
    } in ({1}, {-1})


class Across(Block):
    """A block with one vector of sums, whose terms lie side by side."""

    def _over(self, terms: Terms, level: int) -> int:
        (lanes,) = self.vectors
        width, (count,) = lanes.width, terms.segment.counts
        windows, rest = divmod(count, width)
        moved = 0
        if not self._fits(count):
            with self.nest.counted_down(windows):
                self._window(terms, 0, range(width))
                self._advance(terms, 0, 0, width)
            moved = windows * width
        else:
            for window in range(windows):
                self._window(terms, window * width, range(width))
        if rest:
            self._window(terms, count - width - moved, range(width - rest, width))
        return 0

    def _fits(self, count: int) -> bool:
        return count // self.vectors[0].width <= STRAIGHT_WINDOWS

    def _window(self, terms: Terms, first: int, wanted: Sequence[int]) -> None:
        """Add the wanted ones of as many terms as a vector has, from the first one on."""
        (lanes,) = self.vectors
        (total,) = self.sums
        assert total is not None
        is_backward = any(source.terms and source.terms[-1] == -1 for source in terms.pointers)
        shared: dict[int, Vec] = {}
        rows = [self._row(terms, lanes, n, first, shared) for n in range(lanes.width)]
        places = [lanes.width - 1 - at if is_backward else at for at in wanted]
        columns = self._columns(rows, places)
        for place in places:
            self.code.vector("vaddpd", total, total, columns[place])
            self.registers.release(columns[place])

    def _row(self, terms: Terms, lanes: Vector, n: int, first: int, shared: dict[int, Vec]) -> Vec:
        """A vector of terms of lane n. shared: slot -> the register of an operand that all lanes share."""
        width = lanes.width
        lane = Vector((*lanes.offsets[:-1], lanes.offsets[-1] + n), width)
        leaves: list[Operand] = []
        for slot, source in enumerate(terms.sources):
            if slot in shared:
                leaves.append(shared[slot])
            elif isinstance(source, Source):
                by = source.terms[-1] if source.terms else 0
                place = source.memory(lane, first + (width - 1 if by == -1 else 0))
                if by and source.lanes[-1]:
                    leaves.append(place)
                    continue
                register = self.evaluator.read(place, width, spread=not by)
                leaves.append(register)
                if not source.lanes[-1]:
                    shared[slot] = register
                self.registers.share(register, terms.uses[slot] * (1 if source.lanes[-1] else width) - 1)
            else:
                leaves.append(self.evaluator.constant(source, width))
        return self.evaluator.in_register(self.evaluator.evaluate(terms.segment.template, leaves, width), width)

    # --- the transposition -------------------------------------------------------------------------------------------

    def _columns(self, rows: Sequence[Vec], wanted: Sequence[int]) -> dict[int, Vec]:
        """The wanted columns of as many rows as a row has numbers. Releases the rows."""
        width, columns = len(rows), dict[int, Vec]()
        for parity, name in enumerate(("vunpcklpd", "vunpckhpd")):
            mine = [column for column in wanted if column % 2 == parity]
            if not mine:
                continue
            pairs = [self._joined(name, rows[at], rows[at + 1]) for at in range(0, width, 2)]
            if width == 2:
                columns[mine[0]] = pairs[0]
            elif width == 4:
                for column in mine:
                    columns[column] = self._halves(pairs, column // 2)
            else:
                for half in sorted({column // 4 for column in mine}):
                    quarters = [self._joined(SHUFFLE, pairs[at], pairs[at + 1], (0x44, 0xEE)[half]) for at in (0, 2)]
                    for column in mine:
                        if column // 4 == half:
                            order = (0x88, 0xDD)[column // 2 % 2]
                            columns[column] = self._joined(SHUFFLE, quarters[0], quarters[1], order)
                    self.registers.release(*quarters)
            if width > 2:
                self.registers.release(*pairs)
        self.registers.release(*rows)
        return columns

    def _halves(self, pairs: Sequence[Vec], half: int) -> Vec:
        """The lower or upper halves of two vectors of 4, side by side."""
        if self.evaluator.target.masks:  # the other instruction has only 16 registers
            return self._joined(SHUFFLE, pairs[0], pairs[1], (0, 3)[half])
        return self._joined("vperm2f128", pairs[0], pairs[1], (0x20, 0x31)[half])

    def _joined(self, name: str, first: Vec, second: Vec, immediate: Optional[int] = None) -> Vec:
        to = self.registers.vector(first.size // 8)
        self.code.vector(name, to, first, second, immediate=immediate)
        return to
