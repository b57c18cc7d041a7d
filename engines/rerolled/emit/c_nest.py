"""Run -> statements of C: lanes in vectors, and blocks of sums that stay in registers.

A loop becomes counted loops over its outer lanes; inside, a block of sums side by side, each with its own register;
the segments' loops over terms; the stores. Vector types and constant trip counts make even an unoptimised build fast.
For i<16: v[i] = sum(t<3: p[16*t + i] * x[t]) in vectors of 8 gives

    v8 sum0 = all8(0.0);
    v8 sum1 = all8(0.0);
    for (long long t = 0; t < 3; t++) {
        double *p0 = p + 16*t;
        double *x1 = x + t;
        const v8 shared0 = all8(x1[0]);
        sum0 += AT8(p0) * shared0;
        sum1 += AT8(p0 + 8) * shared0;
    }
    AT8(v) = sum0;
    AT8(v + 8) = sum1;

Names: an area of the workspace is a pointer of its own name; `p0` is operand 0 of a term, which lies in area p.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Optional

from engines.graph.expr import ATOM_PRECEDENCE, INFIX, calls, number
from engines.kernel.c_tree import Assign, Block, Declare, For, Statement
from engines.rerolled.emit.c_expr import spell, spread, vector
from engines.rerolled.emit.single_sums import is_listed, unrolled, with_a_lane
from engines.rerolled.form import Form, lies_in_vectors, vector_widths
from engines.rerolled.recover.groups import Phase
from engines.rerolled.recover.loops import LANE_NAMES, TERM_NAMES, Access, Operand, Segment, Table, affine
from engines.rerolled.recover.nest import Stride
from engines.rerolled.step.language import Due, Run
from engines.rerolled.step.step import Step

OTHERS = 4
"""Registers that hold no sum, where lanes share what they read."""


class Lanes(NamedTuple):
    """A vector of lanes: how far it lies from where the loops stand, one offset for each lane count."""

    offsets: tuple[int, ...]
    width: int


class _Pointer(NamedTuple):
    """The moving part of an access, as a C expression."""

    name: str
    constant: int
    lanes: tuple[Stride, ...]
    moves: bool

    def there(self, block: Lanes, width: int) -> str:
        """What lies there."""
        # Lanes whose places are listed stay alone: their offset is 0.
        at = self.constant + sum(s * offset for s, offset in zip(self.lanes, block.offsets) if isinstance(s, int))
        if width == 1:
            return f"{self.name}[{at}]"
        return f"AT{width}({self.name} {'-' if at < 0 else '+'} {abs(at)})" if at else f"AT{width}({self.name})"

    def read(self, block: Lanes) -> str:
        """The same in every lane, where it does not move with them."""
        if block.width > 1 and not self.lanes[-1]:
            return spread(self.there(block, 1), block.width)
        return self.there(block, block.width)


class Nests:
    """Writes runs, and collects the tables, areas and libm functions that they need."""

    def __init__(self, step: Step, form: Form) -> None:
        self.step = step
        self.form = form
        self.tables: dict[str, str] = {}
        """Text of a table -> its name."""
        self.calls: set[tuple[str, int]] = set()
        self.areas: dict[str, set[str]] = {}
        """A run, as text -> the areas that its statements name."""

    def write(self, run: Run) -> list[Statement]:
        """The statements of a run; for a loop with a small table, the single sums instead."""
        self.areas[str(run)] = set()
        return [statement for simple in unrolled(run.loop) for statement in self._loop(replace(run, loop=simple))]

    def _loop(self, run: Run) -> Iterator[Statement]:
        """As many nests as the inner lanes need."""
        loop, form = run.loop, self.form
        called = [call for segment in loop.segments for call in calls(segment.template)]
        self.calls.update(called)
        if not loop.counts:
            loop = with_a_lane(loop)
            run = replace(run, loop=loop)
        widest = form.width if lies_in_vectors(loop) and not called else 1
        widths = vector_widths(loop.counts[-1], loop.room, widest)
        summed = any(segment.counts for segment in loop.segments)
        # A sum waits for its last addition: others beside it fill the time. What is no sum waits for nothing.
        most = 1 if called else form.accumulators if summed else min(4, form.accumulators)
        if run.in_place and widths[0] > 1:
            most = form.accumulators
        if is_listed(loop, -1):
            most = 1
        if run.rows > 1 and summed:
            most = form.registers - OTHERS
        at = first = 0
        while first < len(widths):
            same = len(list(itertools.takewhile(widths[first].__eq__, widths[first:])))
            row = widths[first : first + min(most // run.rows if summed else most, same)]
            repeats = same // len(row)
            yield from _Nest(self, run, at, row, repeats, most).statements()
            first += repeats * len(row)
            at += repeats * sum(row)

    def table(self, places: Sequence[int]) -> str:
        """The name of a table that holds these places."""
        text = f"[{len(places)}] UNUSED = {{{', '.join(map(str, places))}}};"
        return self.tables.setdefault(text, f"table{len(self.tables)}")

    def listed(self, offsets: Sequence[int], name: str) -> str:
        """An offset from a list."""
        return f"{self.table(offsets)}[{name}]"

    def place(self, run: Run, place: int) -> tuple[str, int]:
        """The name of the area that a place lies in, and where in it. The run needs that name."""
        area = self.step.area_of(place)
        self.areas[str(run)].add(area.name)
        return area.name, place - area.start


class _Nest:
    """Loops over lanes around a block: a row of vectors from inner lane `at` on, and as many outer lanes as fit."""

    def __init__(self, nests: Nests, run: Run, at: int, row: Sequence[int], repeats: int, most: int) -> None:
        self.nests = nests
        self.run = run
        self.loop = loop = run.loop
        self.limits, self.steps = list(loop.counts), [1] * len(loop.counts)
        self.limits[-1], self.steps[-1] = repeats * sum(row), sum(row)
        if len(self.limits) > 1 and run.live_lane != len(self.limits) - 2 and not is_listed(loop, -2):
            fitting = range(1, most // len(row) + 1)
            self.steps[-2] = max(n for n in fitting if self.limits[-2] % n == 0 or n == 1)
        starts = [at + sum(row[:index]) for index in range(len(row))]
        outer = range(self.steps[-2]) if len(self.limits) > 1 else [0]
        self.blocks = [
            Lanes((*[0] * (len(self.limits) - 2), *[o] * (len(self.limits) > 1), start), width)
            for o in outer
            for start, width in zip(starts, row)
        ]
        self.moving = [limit > step for limit, step in zip(self.limits, self.steps)]
        self.hoisted: dict[tuple[str, int], str] = {}
        """What no loop changes, and its width -> the name under which it is read before them."""

    def statements(self) -> list[Statement]:
        if len(self.blocks) == 1 and not any(self.moving) and not any(s.counts for s in self.loop.segments):
            return [self._single(self.blocks[0])]
        body = list(self._block())
        for lane in reversed(range(len(self.limits))):
            if lane == self.run.live_lane:
                body = _over_live(LANE_NAMES[lane], body)
            elif self.moving[lane]:
                body = [For(LANE_NAMES[lane], self.limits[lane], body, self.steps[lane])]
        first = [Declare(f"const {vector(width)}", name, text) for (text, width), name in self.hoisted.items()]
        return body if any(self.moving) and not first else [Block([*first, *body])]

    def _single(self, block: Lanes) -> Statement:
        """A sum of some terms in one go."""
        loop, run = self.loop, self.run
        target, _ = self._pointer("", self._target(), ())
        there = target.there(block, block.width)
        terms = [there] if loop.phase == Phase.SINK and not run.in_place else []
        binds = ATOM_PRECEDENCE
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
        if not run.in_place:
            return Assign(there, total)
        single = len(terms) == 1 and binds > INFIX["mul"].precedence
        return Assign(there, f"{spread('rate', block.width)} * {total if single else f'({total})'}", "-=")

    def _target(self) -> Access:
        """Where the sums go: a parameter where they update it, its gradient where they don't."""
        target = self.loop.target
        return target._replace(base=target.base - self.nests.step.away * self.run.in_place)

    def _block(self) -> Iterator[Statement]:
        """The sums, the segments' terms, and the stores."""
        loop, run = self.loop, self.run
        kind = "sum" if any(segment.counts for segment in loop.segments) else "value"
        sums = [(f"{kind}{n}", block) for n, block in enumerate(self.blocks)]
        target, declared = self._pointer("target", self._target(), ())
        yield from declared
        adds = loop.phase == Phase.SINK and not run.in_place
        begins = not adds and not loop.segments[0].counts
        if not begins:
            for name, block in sums:
                yield Declare(vector(block.width), name, target.read(block) if adds else spread("0.0", block.width))
        for index, segment in enumerate(loop.segments):
            due = run.due if run.due and run.due.segment == index else None
            body = list(self._terms(segment, sums, begins and not index, due))
            for name, count in reversed(list(zip(TERM_NAMES, segment.counts))):
                body = _over_live(name, body) if run.live_segment == index else [For(name, count, body)]
            # Names belong to one segment; those of the first may be the block's.
            apart = not segment.counts and index and any(isinstance(s, Declare) for s in body)
            yield from [Block(body)] if apart else body
        for name, block in sums:
            there = target.there(block, block.width)
            yield Assign(there, f"{self._rate(block)} * {name}", "-=") if run.in_place else Assign(there, name)

    def _terms(
        self, segment: Segment, sums: Sequence[tuple[str, Lanes]], begins: bool, due: Optional[Due]
    ) -> Iterator[Statement]:
        """One round of a segment: a term for each sum."""
        pointers: list[Optional[_Pointer]] = []
        for slot, operand in enumerate(segment.operands):
            pointer = None
            if isinstance(operand, Access):
                pointer, declared = self._pointer(str(slot), operand, segment.counts)
                yield from declared
            pointers.append(pointer)
        texts = [
            [self._operand(*operand, block, segment) for operand in zip(segment.operands, pointers)]
            for _, block in sums
        ]
        if due:
            update = _Update(self, due, segment, sums[0][1])
            yield from update.declarations
            updated = [update.of(n, block, pointers) for n, (_, block) in enumerate(sums)]
            yield from (statement for statements, _ in updated for statement in statements)
            yield from update.kept(pointers)
            texts = [
                [name if slot == due.slot else text for slot, text in enumerate(leaves)]
                for leaves, (_, name) in zip(texts, updated)
            ]
        # What several sums take is read once. A set's order would change the text from process to process.
        counted = [text for leaves in texts for text in dict.fromkeys(leaves)]
        shared = {
            text: f"shared{n}"
            for n, text in enumerate(dict.fromkeys(text for text in counted if counted.count(text) > 1))
            if not text.isidentifier()
        }
        for text, name in shared.items():
            yield Declare(f"const {vector(sums[0][1].width)}", name, text)
        for (name, block), leaves in zip(sums, texts):
            named = {str(slot): (shared.get(text, text), ATOM_PRECEDENCE) for slot, text in enumerate(leaves)}
            term = spell(segment.template, named, block.width)[0]
            yield Declare(vector(block.width), name, term) if begins else Assign(name, term, "+=")

    def _operand(self, operand: Operand, pointer: Optional[_Pointer], block: Lanes, segment: Segment) -> str:
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
        return text if pointer.moves else self.fixed(text, block.width)

    def _rate(self, block: Lanes) -> str:
        return self.fixed(spread("rate", block.width), block.width)

    def fixed(self, text: str, width: int) -> str:
        """The name of what no loop changes: an optimiser can't know, since the loop stores into the same workspace."""
        loops = any(self.moving) or any(segment.counts for segment in self.loop.segments)
        return self.hoisted.setdefault((text, width), f"fixed{len(self.hoisted)}") if loops else text

    def _pointer(self, name: str, access: Access, terms: Sequence[int]) -> tuple[_Pointer, list[Statement]]:
        """The pointer, and its declaration where something moves it."""
        area, first = self.nests.place(self.run, access.base)
        moved = [stride if moves else 0 for stride, moves in zip(access.lanes, self.moving)]
        if not any(moved) and not any(access.terms):
            return _Pointer(area, first, access.lanes, moves=False), []
        name = f"{area}{name}" if name.isdigit() else name
        offset = affine(first, moved, access.terms, self.nests.listed)
        place = f"{area} {offset}" if offset.startswith("-") else f"{area} + {offset}"
        return _Pointer(name, 0, access.lanes, moves=True), [Declare("double *", name, place)]


class _Update:
    """The update that a run makes on its way: each weight is brought up to date, and its term takes what is stored."""

    def __init__(self, nest: _Nest, due: Due, segment: Segment, first: Lanes) -> None:
        self.nest = nest
        self.due = due
        self.first = first
        self.before, declared = nest._pointer("kept", due.before, segment.counts)
        self.factor, declared_too = nest._pointer("factor", due.factor, segment.counts)
        old = Declare(f"const {vector(first.width)}", "old", self.before.read(first))
        self.declarations: list[Statement] = [*declared, *declared_too, old]

    def of(self, n: int, block: Lanes, pointers: Sequence[Optional[_Pointer]]) -> tuple[list[Statement], str]:
        """The update of one vector of weights, and the name of what it stores."""
        weights = pointers[self.due.slot]
        assert weights is not None
        there, by = weights.there(block, block.width), self.factor.read(block)
        by = by if self.factor.moves else self.nest.fixed(by, block.width)
        value = f"{there} - {self.nest._rate(block)} * (old * {by})"
        return [Declare(f"const {vector(block.width)}", f"new{n}", value), Assign(there, f"new{n}")], f"new{n}"

    def kept(self, pointers: Sequence[Optional[_Pointer]]) -> Iterator[Statement]:
        """The input, for the next time: a store beside these is free, a copy of the whole row is not."""
        x = pointers[1 - self.due.slot]
        if self.due.keeps and x is not None:
            yield Assign(self.before.there(self.first, 1), x.there(self.first, 1))


def _over_live(name: str, body: Sequence[Statement]) -> list[Statement]:
    """A loop over the inputs that are listed."""
    return [For("n", "live->count", [Declare("const long long", name, "live->at[n]"), *body])]
