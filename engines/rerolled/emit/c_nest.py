"""Loop -> statements of C: its lanes in vectors and blocks of accumulators.

What is written for a loop: counted loops over the outer lanes; inside, a block of lanes, each with its accumulator;
the segments' loops over terms; the stores. GNU vector types and constant trip counts leave an optimiser little to find
out, and a compiler that has none, little to lose.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Optional

from engines.graph.expr import ATOM_PRECEDENCE, INFIX, calls, number
from engines.rerolled.emit.c_text import braced, over, over_live, spell, spread, vector
from engines.rerolled.recover.groups import Phase
from engines.rerolled.recover.loops import LANE_NAMES, TERM_NAMES, Access, Loop, Operand, Segment, Table, affine
from engines.rerolled.recover.nest import Stride


@dataclass(frozen=True)
class Form:
    """What the C looks like; nothing in it changes a bit of the result."""

    width: int = 1
    """Doubles in a vector; 1: no vectors."""
    registers: int = 16
    """Vectors, or doubles, that the machine holds at once."""
    accumulators: int = 8
    """Lanes, or vectors of them, that a block keeps in registers."""
    piece: int = 60
    """A function ends after so many lines."""
    rows: int = 1
    """Rows of inputs that meet weights together while these rest; 0: nor do updates wait for the next row."""
    units: int = 1
    """Translation units, at most."""
    sparse: bool = False
    """Whether inputs that are 0.0 are skipped; then only rows that have none go together, or share a journey."""


OTHERS = 4
"""Registers that are no accumulators, where lanes share what they read."""
UNROLLED = 64
"""Places of a table up to which they are written into the code instead."""


class Due(NamedTuple):
    """An update that is made on the way, before a product's weights are read: `-= rate * (before * factor)`.

    What they are multiplied with takes the place of `before`, where no other block needs that any more.
    """

    segment: int
    slot: int
    """Which operand is brought up to date."""
    before: Access
    factor: Access


class Manner(NamedTuple):
    """How a loop is written this time."""

    in_place: bool = False
    """A sink: its sum goes straight into the update."""
    live_lane: Optional[int] = None
    """The lane count that goes over the list of inputs that are not zero."""
    live_segment: Optional[int] = None
    """The segment whose terms do."""
    due: Optional[Due] = None
    rows: int = 1
    """How many outer lanes share what they read."""


class _Block(NamedTuple):
    """A vector of lanes: how far it lies from where the loops stand, one offset for each lane count."""

    offsets: tuple[int, ...]
    width: int


class _Pointer(NamedTuple):
    """The moving part of an access, as a C expression."""

    name: str
    constant: int
    lanes: tuple[Stride, ...]

    @property
    def moves(self) -> bool:
        return self.name != "w"

    def there(self, block: _Block, width: int) -> str:
        """What lies there."""
        # Lanes that go by a table stay alone: their offset is 0.
        at = self.constant + sum(s * offset for s, offset in zip(self.lanes, block.offsets) if isinstance(s, int))
        if width == 1:
            return f"{self.name}[{at}]"
        return f"AT{width}({self.name} {'-' if at < 0 else '+'} {abs(at)})" if at else f"AT{width}({self.name})"

    def read(self, block: _Block) -> str:
        """The same in every lane, where it does not move with them."""
        if block.width > 1 and not self.lanes[-1]:
            return spread(self.there(block, 1), block.width)
        return self.there(block, block.width)


class Nests:
    """Writes loops, and learns on the way which tables, vectors and libm functions they need."""

    def __init__(self, form: Form, away: int) -> None:
        self.form = form
        self.away = away
        """From a parameter to its gradient."""
        self.tables: dict[str, str] = {}
        """Text of a table -> its name."""
        self.widths: set[int] = set()
        self.calls: set[tuple[str, int]] = set()

    def write(self, loop: Loop, manner: Manner) -> list[str]:
        """The statements of a loop; of one with a small table the single sums instead."""
        lines: list[str] = []
        for simple in _unrolled(loop):
            lines += self._loop(simple, manner)
        return lines

    def _loop(self, loop: Loop, manner: Manner) -> Iterator[str]:
        """As many nests as the inner lanes need."""
        called = [call for segment in loop.segments for call in calls(segment.template)]
        self.calls.update(called)
        if not loop.counts:
            loop = _with_a_lane(loop)
        widths = _widths(loop.counts[-1], loop.room, self.form.width if _lies_in_vectors(loop) and not called else 1)
        self.widths.update(width for width in widths if width > 1)
        summed = any(segment.counts for segment in loop.segments)
        # A sum waits for its last addition: others beside it fill the time. What is no sum waits for nothing.
        most = 1 if called else self.form.accumulators if summed else min(4, self.form.accumulators)
        if manner.in_place and widths[0] > 1:
            most = self.form.accumulators
        if _goes_by_table(loop, -1):
            most = 1
        if manner.rows > 1 and summed:
            most = self.form.registers - OTHERS
        at = 0
        while widths:
            same = len(list(itertools.takewhile(widths[0].__eq__, widths)))
            row = widths[: min(most // manner.rows if summed else most, same)]
            repeats = same // len(row)
            yield from _Nest(self, loop, manner, at, row, repeats, most).lines()
            del widths[: repeats * len(row)]
            at += repeats * sum(row)

    def is_one_block(self, loop: Loop) -> bool:
        """Whether all lanes of a sum fit side by side."""
        widths = _widths(loop.counts[-1], loop.room, self.form.width if _lies_in_vectors(loop) else 1)
        return len(loop.counts) == 1 and len(set(widths)) == 1 and len(widths) <= self.form.accumulators

    def table(self, places: Sequence[int]) -> str:
        """The name of a table that holds these places."""
        text = f"[{len(places)}] UNUSED = {{{', '.join(map(str, places))}}};"
        return self.tables.setdefault(text, f"t{len(self.tables)}")

    def listed(self, offsets: Sequence[int], name: str) -> str:
        """An offset from a list."""
        return f"{self.table(offsets)}[{name}]"


class _Nest:
    """Loops over lanes around a block: a row of vectors from inner lane `at` on, and of outer lanes as many as fit."""

    def __init__(
        self, nests: Nests, loop: Loop, manner: Manner, at: int, row: Sequence[int], repeats: int, most: int
    ) -> None:
        self.nests = nests
        self.loop = loop
        self.manner = manner
        self.limits, self.steps = list(loop.counts), [1] * len(loop.counts)
        self.limits[-1], self.steps[-1] = repeats * sum(row), sum(row)
        if len(self.limits) > 1 and manner.live_lane != len(self.limits) - 2 and not _goes_by_table(loop, -2):
            fitting = range(1, most // len(row) + 1)
            self.steps[-2] = max(n for n in fitting if self.limits[-2] % n == 0 or n == 1)
        starts = [at + sum(row[:index]) for index in range(len(row))]
        outer = range(self.steps[-2]) if len(self.limits) > 1 else [0]
        self.blocks = [
            _Block((*[0] * (len(self.limits) - 2), *[o] * (len(self.limits) > 1), start), width)
            for o in outer
            for start, width in zip(starts, row)
        ]
        self.moving = [limit > step for limit, step in zip(self.limits, self.steps)]
        self.hoisted: dict[tuple[str, int], str] = {}
        """What no loop changes, and its width -> the name under which it is read before them."""

    def lines(self) -> list[str]:
        if len(self.blocks) == 1 and not any(self.moving) and not any(s.counts for s in self.loop.segments):
            return [self._statement(self.blocks[0])]
        lines = list(self._block())
        for lane in reversed(range(len(self.limits))):
            if lane == self.manner.live_lane:
                lines = over_live(LANE_NAMES[lane], lines)
            elif self.moving[lane]:
                lines = over(LANE_NAMES[lane], self.limits[lane], self.steps[lane], lines)
        first = [f"const {vector(width)} {name} = {text};" for (text, width), name in self.hoisted.items()]
        return [*first, *lines] if any(self.moving) and not first else braced("", [*first, *lines])

    def _statement(self, block: _Block) -> str:
        """A sum of some terms in one go."""
        loop, manner = self.loop, self.manner
        target, _ = self._pointer("", self._target(), ())
        there = target.there(block, block.width)
        terms = [there] if loop.phase == Phase.SINK and not manner.in_place else []
        for segment in loop.segments:
            leaves = {
                str(slot): (
                    self._operand(o, self._pointer("", o, ())[0] if isinstance(o, Access) else None, block, segment),
                    ATOM_PRECEDENCE,
                )
                for slot, o in enumerate(segment.operands)
            }
            text, binds = spell(segment.template, leaves, block.width)
            terms.append(text if binds >= INFIX["add"].precedence else f"({text})")
        total = " + ".join(terms)
        if not manner.in_place:
            return f"{there} = {total};"
        single = len(terms) == 1 and binds > INFIX["mul"].precedence
        return f"{there} -= {spread('rate', block.width)} * {total if single else f'({total})'};"

    def _target(self) -> Access:
        """Where the sums go: a parameter where they update it, its gradient where they don't."""
        target = self.loop.target
        return target._replace(base=target.base - self.nests.away * self.manner.in_place)

    def _block(self) -> Iterator[str]:
        """Accumulators, the segments' terms, and the stores."""
        loop, manner = self.loop, self.manner
        accumulators = [(f"a{n}", block) for n, block in enumerate(self.blocks)]
        target, declared = self._pointer("o", self._target(), ())
        yield from declared
        adds = loop.phase == Phase.SINK and not manner.in_place
        begins = not adds and not loop.segments[0].counts
        if not begins:
            for name, block in accumulators:
                yield f"{vector(block.width)} {name} = {target.read(block) if adds else spread('0.0', block.width)};"
        for index, segment in enumerate(loop.segments):
            due = manner.due if manner.due and manner.due.segment == index else None
            lines = list(self._terms(segment, accumulators, begins and not index, due))
            for name, count in reversed(list(zip(TERM_NAMES, segment.counts))):
                lines = over_live(name, lines) if manner.live_segment == index else over(name, count, 1, lines)
            # Names are a segment's own; those of the first may be the block's.
            yield from lines if segment.counts or not index or not _declares(lines) else braced("", lines)
        for name, block in accumulators:
            there = target.there(block, block.width)
            yield f"{there} -= {self._rate(block)} * {name};" if manner.in_place else f"{there} = {name};"

    def _terms(
        self, segment: Segment, accumulators: Sequence[tuple[str, _Block]], begins: bool, due: Optional[Due]
    ) -> Iterator[str]:
        """One round of a segment: a term for each accumulator."""
        pointers: list[Optional[_Pointer]] = []
        for slot, operand in enumerate(segment.operands):
            pointer = None
            if isinstance(operand, Access):
                pointer, declared = self._pointer(f"r{slot}", operand, segment.counts)
                yield from declared
            pointers.append(pointer)
        texts = [
            [self._operand(*operand, block, segment) for operand in zip(segment.operands, pointers)]
            for _, block in accumulators
        ]
        if due:
            yield from self._bring_up_to_date(due, pointers[due.slot], segment, accumulators, texts)
        # What several accumulators take is read once. A set's order would change the text from process to process.
        counted = [text for leaves in texts for text in dict.fromkeys(leaves)]
        shared = {
            text: f"s{n}"
            for n, text in enumerate(dict.fromkeys(text for text in counted if counted.count(text) > 1))
            if not text.isidentifier()
        }
        for text, name in shared.items():
            yield f"const {vector(accumulators[0][1].width)} {name} = {text};"
        for (name, block), leaves in zip(accumulators, texts):
            named = {str(slot): (shared.get(text, text), ATOM_PRECEDENCE) for slot, text in enumerate(leaves)}
            term = spell(segment.template, named, block.width)[0]
            yield f"{vector(block.width)} {name} = {term};" if begins else f"{name} += {term};"

    def _bring_up_to_date(
        self,
        due: Due,
        pointer: Optional[_Pointer],
        segment: Segment,
        accumulators: Sequence[tuple[str, _Block]],
        texts: list[list[str]],
    ) -> Iterator[str]:
        """The update that was due, lane by lane; the terms then take what it stores."""
        assert pointer is not None
        before, declared = self._pointer("before", due.before, segment.counts)
        yield from declared
        factor, declared = self._pointer("factor", due.factor, segment.counts)
        yield from declared
        width = accumulators[0][1].width
        yield f"const {vector(width)} old = {before.read(accumulators[0][1])};"
        for n, (_, block) in enumerate(accumulators):
            there = pointer.there(block, block.width)
            by = factor.read(block)
            by = by if factor.moves else self._fixed(by, block.width)
            yield f"const {vector(block.width)} new{n} = {there} - {self._rate(block)} * (old * {by});"
            yield f"{there} = new{n};"
            texts[n][due.slot] = f"new{n}"
        if not self.nests.is_one_block(self.loop):
            return
        # For the next time: a store beside these is free, a copy of the row before is not.
        new = self._pointer(f"r{1 - due.slot}", segment.operands[1 - due.slot], segment.counts)[0]  # type: ignore[arg-type]
        yield f"{before.there(accumulators[0][1], 1)} = {new.there(accumulators[0][1], 1)};"

    def _operand(self, operand: Operand, pointer: Optional[_Pointer], block: _Block, segment: Segment) -> str:
        if isinstance(operand, float):
            return spread(number(operand)[0], block.width)
        if isinstance(operand, Table):
            sizes = (*self.loop.counts, *segment.counts)
            strides = list(itertools.accumulate(reversed(sizes[1:]), lambda a, b: a * b, initial=1))[::-1]
            lanes, terms = strides[: len(self.loop.counts)], strides[len(self.loop.counts) :]
            first = sum(stride * offset for stride, offset in zip(lanes, block.offsets))
            moved = [stride * moves for stride, moves in zip(lanes, self.moving)]
            table = self.nests.table(operand.places.reshape(-1).tolist())
            return f"w[{table}[{affine(first, moved, terms)}]]"
        assert pointer is not None
        text = pointer.read(block)
        return text if pointer.moves else self._fixed(text, block.width)

    def _rate(self, block: _Block) -> str:
        return self._fixed(spread("rate", block.width), block.width)

    def _fixed(self, text: str, width: int) -> str:
        """The name of what no loop changes: an optimiser can't know, since the loop stores into the same workspace."""
        loops = any(self.moving) or any(segment.counts for segment in self.loop.segments)
        return self.hoisted.setdefault((text, width), f"h{len(self.hoisted)}") if loops else text

    def _pointer(self, name: str, access: Access, terms: Sequence[int]) -> tuple[_Pointer, list[str]]:
        """The pointer, and its declaration where something moves it."""
        moved = [stride if moves else 0 for stride, moves in zip(access.lanes, self.moving)]
        if not any(moved) and not any(access.terms):
            return _Pointer("w", access.base, access.lanes), []
        text = affine(access.base, moved, access.terms, self.nests.listed)
        return _Pointer(name, 0, access.lanes), [f"double *{name} = w + {text};"]


def _unrolled(loop: Loop) -> Iterator[Loop]:
    """Where a table is small the loop as single sums instead, and places as numbers in the code."""
    tables = [o for segment in loop.segments for o in segment.operands if isinstance(o, Table)]
    if not tables or sum(table.places.size for table in tables) > UNROLLED:
        yield loop
        return
    for lane, digits in enumerate(itertools.product(*map(range, loop.counts))):
        segments = [
            Segment(
                segment.template, (), tuple(_at(operand, lane, digits, term, steps) for operand in segment.operands)
            )
            for segment in loop.segments
            for term, steps in enumerate(itertools.product(*map(range, segment.counts)))
        ]
        target = _at(loop.target, lane, digits, 0, ())
        assert isinstance(target, Access)
        yield Loop(loop.phase, (), target, 1, tuple(segments))


def _goes_by_table(loop: Loop, lane: int) -> bool:
    """Whether places of that lane count are listed, for an operand or the target."""
    accesses = [loop.target, *(o for s in loop.segments for o in s.operands if isinstance(o, Access))]
    return any(isinstance(access.lanes[lane], tuple) for access in accesses)


def _at(operand: Operand, lane: int, digits: Sequence[int], term: int, steps: Sequence[int]) -> Operand:
    """One place of an operand."""
    if isinstance(operand, float):
        return operand
    if isinstance(operand, Table):
        return Access(int(operand.places[lane, term]), ())
    moved = sum(
        s * d if isinstance(s, int) else s[d] for d, s in zip((*digits, *steps), (*operand.lanes, *operand.terms))
    )
    return Access(operand.base + moved, ())


def _with_a_lane(loop: Loop) -> Loop:
    """A single sum as a loop over one lane."""

    def widen(operand: Operand) -> Operand:
        return operand._replace(lanes=(0,)) if isinstance(operand, Access) else operand

    segments = tuple(s._replace(operands=tuple(map(widen, s.operands))) for s in loop.segments)
    return replace(loop, counts=(1,), target=loop.target._replace(lanes=(1,)), segments=segments)


def _lies_in_vectors(loop: Loop) -> bool:
    """Whether inner lanes lie side by side, in the target and in every operand that has one for each."""
    return loop.target.lanes[-1] == 1 and all(
        isinstance(operand, float) or (isinstance(operand, Access) and operand.lanes[-1] in (0, 1))
        for segment in loop.segments
        for operand in segment.operands
    )


def _widths(count: int, room: int, widest: int) -> list[int]:
    """Vectors that cover so many lanes; the last may reach into the room behind them."""
    widths: list[int] = []
    left, width = count, widest
    while left > 0:
        while width > room:
            width //= 2
        widths.append(width)
        left, room = left - width, room - width
    return widths


def _declares(lines: Sequence[str]) -> bool:
    return any(line.startswith(("double *", "const ")) for line in lines)
