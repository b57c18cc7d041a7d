"""Run -> statements of C: lanes in vectors, and blocks of sums that stay in registers.

A loop becomes counted loops over its outer lanes. Inside are a *block* of sums side by side, each in its own register,
then the segments' loops over terms, then the stores. Vector types and constant trip counts make even an unoptimised
build fast. Example: `for i<16: v[i] = sum(t<3: p[16*t + i] * x[t])` in vectors of 8 gives

    v8 sum0 = all8(0.0);
    v8 sum1 = all8(0.0);
    for (long long t = 0; t < 3; t++) {
        number *p0 = p + 16*t;
        number *x1 = x + t;
        const v8 shared0 = all8(x1[0]);
        sum0 += AT8(p0) * shared0;
        sum1 += AT8(p0 + 8) * shared0;
    }
    AT8(v) = sum0;
    AT8(v + 8) = sum1;

An area of the workspace is a pointer with the area's name. `p0` is operand 0 of a term, in area p.

Three terms:

- A *strip* is vectors side by side along the innermost lanes: here one strip of two vectors, `[8, 8]`.
- A *block* is a strip for each of several outer lanes. All of its sums stay in registers.
- A *tile* is a block whose outer lanes are rows taken together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional, Union

from zoomgrad.engines.graph.expr import ATOM_PRECEDENCE, INFIX, number
from zoomgrad.engines.kernel.c_tree import Block, For, If, Include, Statement
from zoomgrad.engines.machine.libm.powers import powers_match_libm
from zoomgrad.engines.rerolled.emit.c_expr import spell, spread, vector
from zoomgrad.engines.rerolled.form import Form, Strips, Vector, heights, steps_of, strips_of, with_a_lane
from zoomgrad.engines.rerolled.recover.loops import (
    LANE_NAMES,
    TERM_NAMES,
    Access,
    Loop,
    Operand,
    Phase,
    Segment,
    affine,
)
from zoomgrad.engines.rerolled.recover.nest import Stride
from zoomgrad.engines.rerolled.recover.templates import SLOTS
from zoomgrad.engines.rerolled.step.language import Due, Panel, Run
from zoomgrad.engines.rerolled.step.series import Count
from zoomgrad.engines.rerolled.step.step import Step

_BLANKS = {slot.name: (f"{{{slot.name}}}", ATOM_PRECEDENCE) for slot in SLOTS}
"""A leaf -> a placeholder for its text. The sums of a block differ only in these texts."""
COUNT = "count"
"""The C name of the number of rows that were taken together."""
ROWS_OF_INPUT = f"turned[{LANE_NAMES[0]}]"
"""The mask of the rows that do not skip the current input."""


class _Pointer(NamedTuple):
    """A pointer of C, and the rest of an access, which the block's lanes move."""

    name: str
    constant: int
    lanes: tuple[Stride, ...]
    declared: tuple[str, ...] = ()
    """The declaration of the pointer, if loops move it."""

    def there(self, block: Vector) -> str:
        """The vector or number in memory for these lanes."""
        steps: Any = zip(self.lanes, block.offsets)
        # Lanes with listed offsets are never in one block, so their offset is 0.
        at, width = self.constant + sum(stride * offset for stride, offset in steps if offset), block.width
        if width == 1:
            return f"{self.name}[{at}]"
        return f"AT{width}({self.name} {'-' if at < 0 else '+'} {abs(at)})" if at else f"AT{width}({self.name})"

    def read(self, block: Vector) -> str:
        """Like `there`, but an operand that is the same for all lanes is spread to a vector."""
        return self.there(block) if self.lanes[-1] else spread(self.there(block._replace(width=1)), block.width)


_Source = Union[str, _Pointer]
"""An operand: the text of a number, or a pointer."""


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
        self.named: set[str] = set()
        """The areas that the current run names."""

    def instead_of_libm(self) -> list[Include]:
        """What computes some functions without libm. It is for compilers that have vectors."""
        if self.form.width == 1:
            return []
        if self.form.is_fast:
            return [Include("kernel/fast.h")] if self.calls & {("exp", 1), ("tanh", 1), ("pow", 2)} else []
        return [Include("rerolled/emit/powers.h")] if ("pow", 2) in self.calls and powers_match_libm() else []

    def write(self, run: Run) -> list[Statement]:
        """The statements of a run."""
        self.named = self.areas[str(run)] = set()
        if not run.rounds:
            return list(self._loop(run, run.loop))
        nests = [Block(list(self._loop(run, loop))) for loop in run.rounds]
        return [For(LANE_NAMES[0], run.rounds[0].counts[0], nests)]

    def _loop(self, run: Run, loop: Loop) -> Iterator[Statement]:
        """Write as many nests as the inner lanes need."""
        self.calls |= {(call.primitive, len(call.operands)) for call in loop.calls}
        if not loop.counts:
            loop = with_a_lane(loop)
        for tall, strips in strips_of(run, loop, self.form):
            yield from _Nest(self, run, loop, strips, tall).statements()

    def table(self, places: Sequence[int]) -> str:
        """The name of a table with these places."""
        text = f"[{len(places)}] UNUSED = {{{', '.join(map(str, places))}}};"
        return self.tables.setdefault(text, f"table{len(self.tables)}")

    def count(self, count: int) -> Union[int, str]:
        """A count, or how it changes from round to round."""
        return affine(int(count), [count.change], (), self.listed) if isinstance(count, Count) else count

    def listed(self, offsets: Sequence[int], name: str) -> str:
        """An offset read from a list."""
        return f"{self.table(offsets)}[{name}]"

    def place(self, place: int) -> tuple[str, int]:
        """The area of a place, and the offset in it. Records that the current run names the area."""
        area = self.step.area_of(place)
        self.named.add(area.name)
        return area.name, place - area.start


class _Nest:
    """Loops over lanes around a block: a strip for each of as many outer lanes as fit."""

    def __init__(self, nests: Nests, run: Run, loop: Loop, strips: Strips, most: int) -> None:
        """most: the most vectors of a block, or the rows of a tile."""
        self.nests = nests
        self.run = run
        self.loop = loop
        self.strips = strips
        panel = run.panel if strips.widths[0] > 1 else None
        self.packed = loop.segments[panel.segment].operands[panel.slot] if panel else None
        """The operand that is read from the panel."""
        self.hoisted: dict[tuple[str, int], str] = {}
        """A loop-invariant expression and its width -> the name of its value, which is read before the loops."""
        self.first = int(bool(run.rounds))
        """The first lane that the nest loops over: a loop around the nests counts the rounds."""
        self.limits, self.steps = steps_of(run, loop, strips, most)
        self.moving = [isinstance(limit, Count) or limit > step for limit, step in zip(self.limits, self.steps)]
        if run.rows > 1:
            self.moving[-2] = True
        if run.rounds:
            self.moving[0] = True
        self.is_straight = not any(self.moving) and not any(segment.counts for segment in loop.segments)
        """Whether the nest has no loops, and all of its places are known."""

    def statements(self) -> list[Statement]:
        if self.run.rows > 1:
            return [self._tiles()]
        tall = self.steps[-2] if len(self.steps) > 1 else 1
        if tall * len(self.strips.widths) == 1 and self.is_straight:
            return [self._single(*self.strips.block(len(self.limits), tall))]
        body = list(self._block(tall))
        for lane in reversed(range(self.first, len(self.limits))):
            if lane == self.run.live_lane:
                body = self._over_live(LANE_NAMES[lane], body)
            elif self.moving[lane]:
                body = [For(LANE_NAMES[lane], self.nests.count(self.limits[lane]), body, self.steps[lane])]
        first = self._fixed_values()
        return body if any(self.moving[self.first :]) and not first else [Block([*first, *body])]

    def _tiles(self) -> Statement:
        """Tiles of sums for all rows, or for all inputs of a sink, by rows of a tile."""
        body = list(self._over_rows())
        if self.run.panel and self.packed:
            body.insert(0, self._pack(self.run.panel))
        if self.run.in_strips:
            body = [For(LANE_NAMES[0], self.limits[0], body)]
        if self.strips.repeats > 1:
            inner = LANE_NAMES[len(self.limits) - 1]
            body = [For(inner, self.strips.repeats * self.strips.lanes, body, self.strips.lanes)]
        return Block([*self._fixed_values(), *body])

    def _over_rows(self) -> Iterator[Statement]:
        """Loops over rows, or over the inputs of a sink: tiles of each height, as many as fit into what is left."""
        start: Union[int, str] = 0
        limit: Union[int, str] = self.loop.counts[-2] if self.run.sums_rows else COUNT
        if self.nests.step.is_divided:
            yield f"const long long first = {limit} * part / parts;"
            yield f"const long long last = {limit} * (part + 1) / parts;"
            start, limit = "first", "last"
        for height in heights(self.steps[-2]):
            stop: Union[int, str] = limit
            if isinstance(start, int) and isinstance(limit, int):
                stop = start + (limit - start) // height * height
            elif height > 1:
                stop = f"stop{height}"
                yield f"const long long {stop} = {start} + ({limit} - {start}) / {height} * {height};"
            if start != stop:
                body = list(self._block(height))
                if self.run.is_live and self.run.sums_rows:
                    body = [If(ROWS_OF_INPUT, body)]
                for lane in reversed(range(int(self.run.in_strips), len(self.limits) - 2)):
                    body = [For(LANE_NAMES[lane], self.limits[lane], body)]
                yield For(LANE_NAMES[len(self.limits) - 2], stop, body, height, start)
            start = stop

    def _fixed_values(self) -> list[Statement]:
        """Declarations of the values that do not change within the nest."""
        return [f"const {vector(width)} {name} = {text};" for (text, width), name in self.hoisted.items()]

    def _single(self, block: Vector) -> Statement:
        """A sum of a few terms in one statement."""
        loop, run = self.loop, self.run
        there = self._pointer("", loop.target).there(block)
        terms = [there] if loop.phase == Phase.SINK and not run.in_place else []
        binds = ATOM_PRECEDENCE
        for segment in loop.segments:
            leaves = {
                str(slot): (self._read(self._source("", operand), block), ATOM_PRECEDENCE)
                for slot, operand in enumerate(segment.operands)
            }
            text, binds = spell(segment.template, leaves, block.width)
            terms.append(text if binds >= INFIX["add"].precedence else f"({text})")
        total = " + ".join(terms)
        if not run.in_place:
            return f"{there} = {total};"
        single = len(terms) == 1 and binds > INFIX["mul"].precedence
        return f"{there} -= {spread('rate', block.width)} * {total if single else f'({total})'};"

    def _block(self, tall: int) -> Iterator[Statement]:
        """The sums, the segments' terms, and the stores. tall: the number of outer lanes."""
        loop, run = self.loop, self.run
        kind = "sum" if any(segment.counts for segment in loop.segments) else "value"
        sums = [(f"{kind}{n}", block) for n, block in enumerate(self.strips.block(len(self.limits), tall))]
        target = self._pointer("target", loop.target)
        yield from target.declared
        adds = loop.phase == Phase.SINK and not run.in_place
        begins = not adds and not loop.segments[0].counts
        if not begins:
            for name, block in sums:
                begin = target.read(block) if adds else spread("0.0", block.width)
                yield f"{vector(block.width)} {name} = {begin};"
        for index, segment in enumerate(loop.segments):
            due = run.due if run.due and run.due.segment == index else None
            body = list(self._terms(segment, sums, begins and not index, due))
            for name, count in reversed(list(zip(TERM_NAMES, segment.counts))):
                if run.live_segment == index:
                    body = self._over_live(name, body)
                else:  # the terms of a sink over several rows are the rows
                    body = [For(name, COUNT if run.sums_rows else self.nests.count(count), body)]
            # A segment's names need their own scope, except those of the first, which may share the block's.
            apart = not segment.counts and index and len(body) > len(sums)
            yield from [Block(body)] if apart else body
        for name, block in sums:
            there = target.there(block)
            yield f"{there} -= {self._change(name, block)};" if run.in_place else f"{there} = {name};"

    def _terms(
        self, segment: Segment, sums: Sequence[tuple[str, Vector]], begins: bool, due: Optional[Due]
    ) -> Iterator[Statement]:
        """One round of a segment: a term for each sum."""
        sources = [self._source(str(slot), operand) for slot, operand in enumerate(segment.operands)]
        for source in sources:
            yield from () if isinstance(source, str) else source.declared
        texts = [[self._read(source, block) for source in sources] for _, block in sums]
        blocks = {block.width: block for _, block in sums}
        if due:
            before = self._pointer("kept", due.before)
            factor = self._pointer("factor", due.factor)
            yield from (*before.declared, *factor.declared)
            yield from (f"const {vector(width)} old{width} = {before.read(block)};" for width, block in blocks.items())
        # Read operands that sums share only once, just before the first of them: gcc -O1 keeps the order of the loads,
        # and a tile leaves few registers for them. Not in a set's order, which would change the text between processes.
        counted = Counter(text for leaves in texts for text in set(leaves))
        shared: dict[str, str] = {}
        patterns = {width: spell(segment.template, _BLANKS, width)[0] for width in blocks}
        for n, ((name, block), leaves) in enumerate(zip(sums, texts)):
            if due:  # update each weight and store it; the term uses the new value
                weights, new = sources[due.slot], f"new{n}"
                assert isinstance(weights, _Pointer)
                there, by = weights.there(block), self._read(factor, block)
                minus_rate = self._fixed(spread("-rate", block.width), block.width)
                # Not a difference, because only a sum can have its first operand, the weight, in memory.
                yield f"const {vector(block.width)} {new} = {there} + {minus_rate} * (old{block.width} * {by});"
                yield f"{there} = {new};"
                leaves[due.slot] = new
            for text in dict.fromkeys(leaves):
                if counted[text] > 1 and text not in shared and not text.isidentifier():
                    shared[text] = f"shared{len(shared)}"
                    yield f"const {vector(block.width)} {shared[text]} = {text};"
            term = patterns[block.width].format(*[shared.get(text, text) for text in leaves])
            yield f"{vector(block.width)} {name} = {term};" if begins else f"{name} += {term};"

    def _pack(self, panel: Panel) -> Statement:
        """Copy the strip's lanes of an operand to the panel, term by term."""
        segment = self.loop.segments[panel.segment]
        assert isinstance(self.packed, Access)
        assert self.strips.lanes <= self.nests.form.strip
        source, to = self._pointer("from", self.packed), self._panel(panel)
        copies: list[Any] = [f"{to.there(v)} = {source.there(v)};" for v in self.strips.block(len(self.limits), 1)]
        apart, at = self.packed.lanes[-1], self.strips.at
        if apart != 1:
            place = f"packed[n - {at}]" if at else "packed[n]"
            copies = [For("n", at + self.strips.lanes, [f"{place} = from[{apart} * n];"], start=at)]
        count = COUNT if self.run.sums_rows else segment.counts[0]
        return For(TERM_NAMES[0], count, [*source.declared, *to.declared, *copies])

    def _panel(self, panel: Panel) -> _Pointer:
        """The pointer to a term of the panel."""
        area, first = self.nests.place(panel.base)
        own = f"{panel.per_part} * part + " if self.nests.step.is_divided else ""
        place = f"{area} + {own}{affine(first, (), (self.strips.lanes,))}"
        lanes = (*[0] * (len(self.limits) - 1), 1)
        return _Pointer("packed", -self.strips.at, lanes, (f"number *packed = {place};",))

    def _source(self, name: str, operand: Operand) -> _Source:
        """An operand of a segment, in memory or in the panel."""
        if isinstance(operand, float):
            return number(operand)[0]
        if self.run.panel and operand is self.packed:
            return self._panel(self.run.panel)
        return self._pointer(name, operand)

    def _read(self, source: _Source, block: Vector) -> str:
        """The vector or number of an operand for these lanes. What no loop moves is read before the loops."""
        if isinstance(source, str):
            return spread(source, block.width)
        text = source.read(block)
        return text if source.declared else self._fixed(text, block.width)

    def _change(self, name: str, block: Vector) -> str:
        """What an update in place subtracts: as `update`, it divides by the rows of the batch."""
        rate, rows = (spread(text, block.width) for text in ("rate", f"(number){COUNT}"))
        change = f"{self._fixed(rate, block.width)} * {name}"
        return f"{change} / {self._fixed(rows, block.width)}" if self.run.rows > 1 else change

    def _fixed(self, text: str, width: int) -> str:
        """Hoist a loop-invariant expression. Optimisers can't do it, because the loop stores to the same workspace."""
        return text if self.is_straight else self.hoisted.setdefault((text, width), f"fixed{len(self.hoisted)}")

    def _pointer(self, name: str, access: Access) -> _Pointer:
        """The pointer to an access."""
        area, first = self.nests.place(access.base)
        moved = [stride if moves else 0 for stride, moves in zip(access.lanes, self.moving)]
        if not any(moved) and not any(access.terms):
            return _Pointer(area, first, access.lanes)
        if name.isdigit():
            name = f"{area}{name}"
            if name in ("u2", "v2"):  # types of vectors
                name = f"{name}_"
        offset = affine(first, moved, access.terms, self.nests.listed)
        place = f"{area} {offset}" if offset.startswith("-") else f"{area} + {offset}"
        return _Pointer(name, 0, access.lanes, (f"number *{name} = {place};",))

    def _over_live(self, name: str, body: Sequence[Statement]) -> list[Statement]:
        """A loop over the listed inputs, or over the bits of a mask."""
        if self.run.sums_rows:
            row = f"const long long {name} = __builtin_ctzll(rest);"
            return [f"for (word rest = {ROWS_OF_INPUT}; rest; rest &= rest - 1)", Block([row, *body])]
        listed = f"lists[{LANE_NAMES[0]}]." if self.run.rows > 1 else "live->"
        return [For("n", f"{listed}count", [f"const long long {name} = {listed}at[n];", *body])]
