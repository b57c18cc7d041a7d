"""Sums whose terms lie side by side, while their lanes are apart: terms in vectors, then a transposition.

Each lane adds in the order of its terms, so vectors of terms can't be added across. Example: `for i<4: g[i] =
sum(t<4: p[8*i + t] * v[t])` in vectors of 4. The terms of a lane are one product of vectors; these four *rows* are
transposed, so that each *column* has one term of all lanes, and the columns are added in order:

    row 0: p[0] * v[0], p[1] * v[1], …          column 0: p[0] * v[0], p[8] * v[0], p[16] * v[0], p[24] * v[0]
    row 1: p[8] * v[0], p[9] * v[1], …          column 1: p[1] * v[1], p[9] * v[1], …

A product for each term and lane takes 16 multiplications of numbers; this takes 4 of vectors and 8 permutations. If a
count is not a multiple of the width, the last window of terms overlaps the one before, and only its last columns count.
Fast code may add in any order, so it adds up the rows of all whole windows first, and transposes once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from zoomgrad.engines.machine.block import Block, Terms, with_terms_as_lanes
from zoomgrad.engines.machine.encode import Vec
from zoomgrad.engines.rerolled.form import Form, Vector, vector_widths, widths_of
from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Segment
from zoomgrad.engines.rerolled.step.language import Run
from zoomgrad.engines.rerolled.step.series import Count

SHUFFLE = "vshuff64x2"
Stage = list[tuple[str, Optional[int]]]
"""The instructions, with constants, that pick the numbers of two rows whose place has the bit 0, and the bit 1."""
PAIRS: Stage = [("vunpcklpd", None), ("vunpckhpd", None)]
QUARTERS: Stage = [(SHUFFLE, 0x88), (SHUFFLE, 0xDD)]


def widths_across(run: Run, loop: Loop, form: Form) -> list[int]:
    """The widths of vectors that cover the inner lanes exactly; empty if lanes are contiguous or terms are not."""
    lanes = loop.counts[-1]
    summed = [segment for segment in loop.segments if segment.counts]
    if (
        not summed
        or run.rows > 1
        or run.is_live
        or run.due
        or form.calls(loop)
        or loop.target.lanes[-1] != 1
        or isinstance(lanes, Count)
        or not all(map(_is_across, loop.segments))
        or widths_of(run, loop, form)[0] > 1
    ):
        return []
    width = form.width
    while width > min(segment.counts[-1] for segment in summed):
        width //= 2
    return vector_widths(lanes, lanes, width) if width > 1 else []


def _is_across(segment: Segment) -> bool:
    accesses = [operand for operand in segment.operands if isinstance(operand, Access)]
    if not segment.counts:
        return all(access.lanes[-1] in (0, 1) for access in accesses)
    if isinstance(segment.counts[-1], Count):
        return False
    return all(isinstance(access.lanes[-1], int) for access in accesses) and {
        access.terms[-1] for access in accesses if access.terms[-1] != 0
    } in ({1}, {-1})


class Across(Block):
    """A block with one vector of sums, whose terms lie side by side."""

    most_parts = 1  # because columns are added one after the other
    rows: Optional[dict[int, Vec]] = None
    """The sums of whole windows, which fast code transposes once."""

    def _over(self, terms: Terms, level: int) -> int:
        counts, width = terms.segment.counts, self.vectors[0].width
        if level or not self.evaluator.fast or (*counts[:-1], counts[-1] // width) == (1,) * len(counts):
            return self._windows(terms, level)
        self.rows = {row: self.registers.vector(width) for row in range(width)}
        for row in self.rows.values():
            self.evaluator.clear(row)
        moved = self._windows(terms, level)
        self._add_columns(self.rows, range(width))
        self.rows = None
        return moved

    def _windows(self, terms: Terms, level: int) -> int:
        """Windows over the terms of the innermost level, in loops over the levels around it."""
        (lanes,) = self.vectors
        counts, width = terms.segment.counts, lanes.width
        if level < len(counts) - 1:
            return super()._over(terms, level)
        windows, rest = divmod(counts[-1], width)
        moved = windows * width if windows > 1 else 0
        if moved:
            with self.nest.counted_down(windows):
                self._window(terms, 0, range(width))
                self._advance(terms, level, 0, width)
        elif windows:
            self._window(terms, 0, range(width))
        if rest:
            self._window(terms, counts[-1] - width - moved, range(width - rest, width))
        return moved

    def _window(self, terms: Terms, first: int, wanted: Sequence[int]) -> None:
        """Load one vector of terms from `first` on, and add the wanted ones."""
        (lanes,) = self.vectors
        *outer, at = lanes.offsets
        is_backward = any(source.terms[-1:] == (-1,) for source in terms.pointers)
        start = first + lanes.width - 1 if is_backward else first  # the term with the lowest address
        rows = Block(self.nest, [Vector((*outer, at + n, start), lanes.width) for n in range(lanes.width)])
        adds_rows = self.rows is not None and len(wanted) == lanes.width
        if self.rows and adds_rows:
            rows.sums = self.rows
        rows._term(terms._replace(sources=[with_terms_as_lanes(each, 1) for each in terms.sources]), 0)
        if not adds_rows:
            self._add_columns(rows.sums, [lanes.width - 1 - term if is_backward else term for term in wanted])

    def _add_columns(self, rows: dict[int, Vec], places: Sequence[int]) -> None:
        total, columns = self.sums[0], self._transposed(rows, places)
        for place in places:
            self.code.vector("vaddpd", total, total, columns[place])
        self.registers.release(*columns.values())

    def _transposed(self, rows: dict[int, Vec], wanted: Sequence[int]) -> dict[int, Vec]:
        """The wanted columns of a square of rows. Releases the rows.

        A stage exchanges a bit of the row's number for a bit of the place in it: the registers of two rows take those
        numbers of both in which the bit is 0, and those in which it is 1.
        """
        halves: Stage = [(SHUFFLE, 0), (SHUFFLE, 3)]
        if not self.registers.has_masks:  # the other instruction has only 16 registers
            halves = [("vperm2f128", 0x20), ("vperm2f128", 0x31)]
        stages = {2: [PAIRS], 4: [PAIRS, halves], 8: [PAIRS, QUARTERS, QUARTERS]}[len(rows)]
        for bit, stage in enumerate(stages):
            apart = 1 << bit
            needed = {column % (2 * apart) for column in wanted}
            for at in [at for at in rows if not at & apart]:
                first, second = rows.pop(at), rows.pop(at + apart)
                for to, (name, immediate) in zip((at, at + apart), stage):
                    if to % (2 * apart) in needed:
                        rows[to] = self.registers.vector(first.size // 8)
                        self.code.vector(name, rows[to], first, second, immediate=immediate)
                self.registers.release(first, second)
        return rows
