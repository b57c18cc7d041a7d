"""The form of generated code: vectors, registers, function size, rearrangements; and how vectors cover a loop's lanes.

Only `is_fast` changes bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Optional

from zoomgrad.engines.machine.libm.fast import is_fast
from zoomgrad.engines.rerolled.recover.loops import Access, Loop
from zoomgrad.engines.rerolled.step.language import Panel, Run
from zoomgrad.engines.rerolled.step.series import Count, width_in_rounds

TALLEST = 8
"""The most rows of a tile."""
LEAST_ROWS, MOST_ROWS, MOST_WIDE_ROWS = 12, 48, 120
"""On one thread, rows taken together are a multiple of LEAST_ROWS, which tiles of 6 and of 4 rows divide."""
ROWS_SHARE, LISTED_SHARE, COMPUTED_SHARE, WIDE_SHARE = 3, 2, 2, 0.75
"""Rows are taken together until their inputs fill 1/ROWS_SHARE of the second-level cache, as the weights pass through
it too, or their computed numbers 1/COMPUTED_SHARE. Inputs that are listed fill 1/LISTED_SHARE: most are never read. If
the weights exceed the cache, inputs fill 1/WIDE_SHARE: the more rows, the fewer passes over weights farther away."""


@dataclass(frozen=True)
class Form:
    """The machine's vectors, the limits on functions, and the rearrangements to make."""

    width: int = 1
    """Doubles in a vector; 1: no vectors."""
    registers: int = 16
    """Number of the machine's registers, each for a vector or a number."""
    accumulators: int = 8
    """Maximum number of sums, each a lane or a vector of lanes, that a block keeps in registers."""
    piece: int = 60
    """A function ends after this many lines."""
    units: int = 1
    """Maximum number of translation units."""
    rearrangements: tuple[str, ...] = ("in place", "deferred")
    """Names of `rearrange.REARRANGEMENTS`, in any order."""
    rows: Optional[int] = None
    """The most rows to take together, 60 where zeros are skipped; None: derived from the cache, see `rows_together`."""
    cache: int = 256 << 10
    """Bytes of the second-level cache."""
    many_terms: int = 2048
    """A loop of values or gradients with this many terms, of all lanes, runs in tiles of the rows taken together."""
    threads: int = 1
    """The most threads that divide a step. It sizes the groups of rows; the bits are the same for any number."""
    embeds: bool = False
    """Whether products in tiles of machine code spread a row's number from memory: faster on Zen 4, slower on Xeons."""

    is_fast: bool = False
    """Whether products and sums are fused, and functions computed by `kernel/fast.h` or `machine/libm/fast.py`."""
    has_functions: bool = False
    """Whether nests compute the functions of `machine/libm/fast.py` in vectors, without calls."""

    def rows_together(self, inputs: int, computed: int, parameters: int) -> int:
        """The most rows to take together. inputs, computed: of a row; the latter are values, gradients and others."""
        if self.rows is not None:
            return self.rows
        share: float = LISTED_SHARE if "zeros skipped" in self.rearrangements else ROWS_SHARE
        numbers, most = max(share * inputs, COMPUTED_SHARE * computed), MOST_ROWS
        if self.is_beyond_cache(parameters):
            numbers, most = WIDE_SHARE * inputs, MOST_WIDE_ROWS
        fitting = int(self.cache / (8 * max(numbers, 1)))
        return max(LEAST_ROWS, min(most, fitting // LEAST_ROWS * LEAST_ROWS))

    def is_beyond_cache(self, numbers: int) -> bool:
        """Whether these many numbers are larger than the second-level cache."""
        return 8 * numbers > self.cache

    def calls(self, loop: Loop) -> bool:
        """Whether a loop calls functions of libm, each for one number at a time."""
        return any(not (self.has_functions and is_fast(call)) for call in loop.calls)

    @property
    def strip(self) -> int:
        """The most lanes side by side: in a tile, or in a block over listed inputs.

        Besides the sums, a term takes two registers, and an update one for its rate.
        """
        return self.width * (self.registers - 3)

    def tile(self, vectors: int, widest: int = 0) -> tuple[int, int]:
        """Rows and vectors of the tile of sums to keep in registers, for lanes that fill that many vectors.

        widest: the most vectors. Besides the sums, a term takes a register for each vector of weights, for a row's
        number, and for a product. A number that is loaded serves most sums if the tile is about as tall as it is wide.
        """
        strips = -(-vectors // (widest or (4 if self.registers > 16 else 2)))
        wide = -(-vectors // strips)
        return min(TALLEST, (self.registers - 2 - wide) // wide // 2 * 2), wide


def heights(tallest: int) -> list[int]:
    """Heights of tiles, tallest first. Each takes as many of the remaining rows as it can; lower tiles are slower."""
    return list(dict.fromkeys((tallest, min(tallest, 4), min(tallest, 2), 1)))


def lies_in_vectors(loop: Loop, panel: Optional[Panel] = None) -> bool:
    """Whether inner lanes are contiguous, in the target and in every operand that differs between lanes.

    panel: replaces an operand.
    """
    return loop.target.lanes[-1] == 1 and all(
        operand.lanes[-1] in (0, 1) or (panel and panel[:2] == (number, slot)) for number, slot, operand in loop.reads()
    )


def is_listed(loop: Loop, lane: int) -> bool:
    """Whether the target or an operand lists the offsets of that lane count."""
    return any(isinstance(access.lanes[lane], tuple) for access in accesses(loop))


def has_strides(loop: Loop) -> bool:
    """Whether no access has a list of offsets."""
    return all(isinstance(stride, int) for access in accesses(loop) for stride in (*access.lanes, *access.terms))


def accesses(loop: Loop) -> list[Access]:
    """The target and all operands in memory."""
    return [loop.target, *(operand for _, _, operand in loop.reads())]


def with_a_lane(loop: Loop) -> Loop:
    """Convert a single sum to a loop over one lane."""
    target = loop.target._replace(lanes=(1,))
    return replace(loop.moved(lambda access: access._replace(lanes=(0,))), counts=(1,), target=target)


def vector_widths(lanes: int, room: int, widest: int) -> list[int]:
    """The widths of the vectors that cover these lanes. The last one may extend into the room after them.

    5 lanes with room for 8, and vectors at most 4 wide, give 4 and 4. With room for 6 they give 4 and 2.
    """
    widths: list[int] = []
    left, width = lanes, widest
    while left > 0:
        while width > room:
            width //= 2
        widths.append(width)
        left, room = left - width, room - width
    return widths


class Strips(NamedTuple):
    """Equal strips of vectors, one after the other along the innermost lanes."""

    at: int
    """The first lane."""
    widths: Sequence[int]
    """The vectors of a strip."""
    repeats: int

    @property
    def lanes(self) -> int:
        """The lanes of one strip."""
        return sum(self.widths)

    def block(self, counts: int, tall: int) -> list[Vector]:
        """The vectors of a block: a strip for each of `tall` outer lanes. counts: how many lane counts the loop has."""
        starts = itertools.accumulate(self.widths[:-1], initial=self.at)
        strip = list(zip(starts, self.widths))
        zeros = [0] * (counts - 2)
        return [Vector((*zeros, outer, at)[-counts:], width) for outer in range(tall) for at, width in strip]


def widths_of(run: Run, loop: Loop, form: Form) -> list[int]:
    """The widths of the vectors that cover the inner lanes."""
    widest, lanes = form.width if lies_in_vectors(loop, run.panel) and not form.calls(loop) else 1, loop.counts[-1]
    if isinstance(lanes, Count):
        return [width_in_rounds(lanes, loop.room, widest)]
    widths = vector_widths(lanes, loop.room, widest)
    # 10 lanes take vectors of 8 and 2, not 8 and 8; over one row 8 and 4. Tiles over lists keep equal vectors, so that
    # they read each list once.
    least = 4 if run.rows == 1 else form.width if run.is_live else 1
    while widths[-1] // 2 >= max(least, lanes - sum(widths[:-1])):
        widths[-1] //= 2
    return widths


def _most_sums(run: Run, loop: Loop, form: Form, width: int) -> int:
    """The most vectors of sums in a block over one row. width: of its vectors."""
    if run.live_segment is None and (form.calls(loop) or is_listed(loop, -1)):
        return 1
    # Each addition of a sum waits for the previous one, so other sums fill the time. Without sums there is no wait. But
    # an update reads a factor once for all vectors of its block.
    has_many = any(segment.counts for segment in loop.segments) or (run.in_place and width > 1)
    # Few strips: the processor prefetches each one of a deferred update, and unequal ones would each read a list.
    is_one_strip = run.in_place and run.live_lane is not None and loop.counts[-1] <= form.strip
    if run.live_segment is not None or ((run.due or is_one_strip) and width > 1):
        return form.strip // form.width - bool(run.due)  # a term of a deferred update takes one more register
    return form.accumulators if has_many else min(4, form.accumulators)


def strips_of(
    run: Run, loop: Loop, form: Form, part: int = 1, across: Sequence[int] = ()
) -> Iterator[tuple[int, Strips]]:
    """The strips of a loop's vectors; before each, the most vectors of a block, or the rows of a tile.

    part: blocks and tiles have at most this part of the usual sums. across: other widths; each vector has its block.
    """
    usual = widths_of(run, loop, form)
    most, widths = _most_sums(run, loop, form, usual[0]), across or usual
    may_join = part == 1 and (not across if run.rows == 1 else not run.is_live and any(s.counts for s in loop.segments))
    at = first = 0
    while first < len(widths):
        same = len(list(itertools.takewhile(widths[first].__eq__, widths[first:])))
        if run.live_segment is not None:
            # As few strips as possible, because each one reads the list again.
            strips_in_all = -(-same // most)
            tall, wide = 1, -(-same // strips_in_all)
        elif across:
            tall, wide = 1 if widths[first] > 1 else most, 1
        else:
            tall, wide = (most, min(most, same)) if run.rows == 1 else form.tile(same)
        tall, wide = max(1, tall // part), max(1, wide // part)
        repeats, end = same // wide, first + same // wide * wide
        # The last vector joins the strip before it, because separate blocks would read the rows' numbers again.
        taller = tall if run.rows == 1 else form.tile(wide + 1, wide + 1)[0]
        joins = may_join and (wide < most if run.rows == 1 else taller > 4) and widths[end:] == widths[-1:] != [1]
        if repeats > joins:
            yield tall, Strips(at, widths[first : first + wide], repeats - joins)
            at += sum(widths[first : first + (repeats - joins) * wide])
        if joins:
            yield taller, Strips(at, widths[-wide - 1 :], 1)
        first = end + joins


def steps_of(run: Run, loop: Loop, strips: Strips, most: int) -> tuple[list[int], list[int]]:
    """For each lane count, where the loop over these strips stops, and how many lanes a block takes.

    most: the most vectors of a block, or the rows of a tile. A loop around the nests of a series counts the rounds.
    """
    inner = loop.counts[-1]
    limits = [*loop.counts[:-1], inner if isinstance(inner, Count) else strips.repeats * strips.lanes]
    steps = [*[1] * (len(limits) - 1), strips.lanes]
    outer = len(limits) - 2
    if run.rows > 1:
        steps[-2] = min(most, run.tall) if run.tall and run.sums_rows else most
    elif outer >= bool(run.rounds) and run.live_lane != outer and not is_listed(loop, -2):
        fitting = 1 if isinstance(limits[-2], Count) else most // len(strips.widths)
        steps[-2] = max((n for n in range(1, fitting + 1) if limits[-2] % n == 0), default=1)
    return limits, steps


class Vector(NamedTuple):
    """A vector of lanes of a block."""

    offsets: tuple[int, ...]
    """From the current iteration, for each lane count."""
    width: int
