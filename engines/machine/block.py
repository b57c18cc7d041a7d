"""A block of sums in registers: their first values, the terms of each segment, and the stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

from zoomgrad.engines.graph.expr import Apply, Expr, leaves
from zoomgrad.engines.machine.encode import RAX, Mem, Reg, Vec
from zoomgrad.engines.machine.expression import Operand
from zoomgrad.engines.machine.registers import Known
from zoomgrad.engines.machine.target import Word, word
from zoomgrad.engines.rerolled.form import Vector
from zoomgrad.engines.rerolled.rearrange.weight_reuse import PRODUCT
from zoomgrad.engines.rerolled.recover.loops import Phase, Segment
from zoomgrad.engines.rerolled.recover.nest import Stride
from zoomgrad.engines.rerolled.step.language import Due
from zoomgrad.engines.rerolled.step.series import Count

if TYPE_CHECKING:
    from zoomgrad.engines.machine.nest import Nest

STRAIGHT = 16
"""Up to this many terms of all sums are written one after the other; more are a loop of several terms at a time."""
RESERVE = 4
"""Vector registers to leave free when values that a loop does not change are read before it."""


@dataclass
class Source:
    """An operand of a segment, and the registers that its address needs."""

    base: Reg
    disp: int
    lanes: tuple[Stride, ...]
    terms: tuple[Stride, ...] = ()
    index: Optional[Reg] = None
    """Added to the address, `scale` times."""
    scale: int = 1
    list: Optional[Reg] = None
    """Points to a list with the offset of each term, in 4 bytes. RAX is the index: it holds the offset of a term."""

    def memory(self, lanes: Vector, term: int) -> Mem:
        """The place for lanes of a block and an unrolled term.

        Lanes whose stride is a list of offsets do not vary within a block.
        """
        doubles: Any = self.terms[-1] * term if term and self.terms else 0
        for stride, by in zip(self.lanes, lanes.offsets):
            doubles += stride * by if by else 0
        return Mem(self.base, self.disp + 8 * doubles, self.index, self.scale)

    def value(self, lanes: Vector, term: int, widest: int) -> Known:
        """What is read: a number for each lane, or one for all lanes, spread to the widest vector."""
        width = lanes.width if self.lanes[-1] else widest
        return Known(self.memory(lanes, term), 8 * width, width > 1 and not self.lanes[-1])


def with_terms_as_lanes(source: Union[float, Source], width: int) -> Union[float, Source]:
    """An operand for vectors of terms: the terms in a vector become a further lane count."""
    if isinstance(source, float):
        return source
    *outer, inner = source.terms or (0,)
    return replace(source, lanes=(*source.lanes, inner), terms=(*outer, inner * width) if source.terms else ())


class Terms(NamedTuple):
    """The terms of a segment."""

    segment: Segment
    sources: list[Union[float, Source]]
    """One for each slot."""
    reads: list[int]
    """The slots in the order in which the template names them; some more than once."""
    due: Optional[Due]
    of_due: list[Source]
    """The inputs and the factor of a deferred update."""

    @property
    def pointers(self) -> list[Source]:
        """Everything that is read from memory."""
        return [source for source in (*self.sources, *self.of_due) if isinstance(source, Source)]


class Block:
    """Sums in registers: a vector of sums for each of some vectors of lanes."""

    most_parts = 4  # of a sum in fast code

    def __init__(self, nest: Nest, vectors: Sequence[Vector]) -> None:
        self.nest = nest
        self.code = nest.code
        self.registers = nest.registers
        self.evaluator = nest.writer
        self.vectors = vectors
        self.widest = max(each.width for each in vectors)
        self.sums: dict[int, Vec] = {}
        """The register of each sum that has begun, by the number of its vector."""
        self.waiting: list[dict[int, Vec]] = []
        """Further parts of each sum. Fast code adds terms to the parts in turn."""
        self.target: Optional[Source] = None
        """Where each sum is stored as soon as it is known, to free its register. None: all are stored at the end."""

    def write(self) -> None:
        """Write the block."""
        loop, run = self.nest.loop, self.nest.run
        adds = loop.phase == Phase.SINK and not run.in_place
        if adds or loop.segments[0].counts:
            self.sums = {n: self.registers.vector(lanes.width) for n, lanes in enumerate(self.vectors)}
            target = self.nest.target() if adds else None
            for n, lanes in enumerate(self.vectors):
                if target:
                    self.evaluator.load(self.sums[n], target.memory(lanes, 0))
                else:
                    self.evaluator.clear(self.sums[n])
        if not adds and not self.nest.calls and len(loop.segments) == 1 and not loop.segments[0].counts:
            self.target = self.nest.target()
        for number in range(len(loop.segments)):
            with self.registers.scope():
                self._segment(number)
        if self.target is None:
            target = self.nest.target()
            for n in range(len(self.vectors)):
                self._store(target, n)

    def _store(self, target: Source, n: int) -> None:
        """Store a sum, or change its target by it."""
        total, lanes = self.sums[n], self.vectors[n]
        place = target.memory(lanes, 0)
        if self.nest.run.in_place:  # `-= rate * total`; `-= rate * total / batch` for the rows of a whole batch
            width, binary = lanes.width, self.evaluator.binary
            total = binary("mul", total, self.evaluator.read(self.nest.rate)._replace(size=8 * width), width)
            if self.nest.run.rows > 1:
                total = binary("div", total, self.evaluator.read(Known(word(Word.SIZE), 8 * width, width > 1)), width)
            total = binary("sub", self.evaluator.in_register(place, width), total, width)
        self.evaluator.store(place, total)
        self.registers.release(total)

    # --- loops over terms --------------------------------------------------------------------------------------------

    def _segment(self, number: int) -> None:
        """Add all terms of a segment to the sums."""
        segment, run = self.nest.loop.segments[number], self.nest.run
        due = run.due if run.due and run.due.segment == number else None
        source = partial(self.nest.source, counts=segment.counts)
        reads = [int(leaf.name) for leaf in leaves(segment.template)]
        sources = [operand if isinstance(operand, float) else source(operand) for operand in segment.operands]
        of_due = [source(due.before), source(due.factor)] if due else []
        terms = Terms(segment, sources, reads, due, of_due)
        if not segment.counts:
            self._term(terms, 0)
        elif run.live_segment == number:
            with self.evaluator.fixed(self._values_for_all(terms), reserve=RESERVE):
                self._over_listed(terms)
        elif self._fit_vectors(terms):
            self._add_across(terms)
        else:
            self._add_all(terms)

    def _add_all(self, terms: Terms) -> int:
        """Add terms in loops. Returns how many terms the pointers have moved on."""
        with self.evaluator.fixed(self._values_for_all(terms), reserve=RESERVE):
            self._begin_parts()
            moved = self._over(terms, 0)
            while self.waiting:  # in pairs, which do not wait for each other
                add, others = partial(self.evaluator.binary, "add"), self.waiting.pop(0)
                self.waiting.append({n: add(self.sums[n], others[n], self.vectors[n].width) for n in others})
                self.sums = self.waiting.pop(0)
        return moved

    def _fit_vectors(self, terms: Terms) -> bool:
        """Whether fast code adds the terms of a single sum in vectors: if they are many, and contiguous in memory."""
        (*outer, count), (lanes, *more) = terms.segment.counts, self.vectors
        if outer or more or terms.due or lanes.width > 1 or isinstance(count, Count) or self.nest.run.sums_rows:
            return False
        is_long = self.evaluator.fast and count >= 4 * self.registers.width
        return is_long and all(not s.list and s.terms in ((), (0,), (1,)) for s in terms.pointers)

    def _add_across(self, terms: Terms) -> None:
        """Add the terms in vectors, to one sum for each lane. Then add up the lanes, and add the remaining terms."""
        (count,), width, evaluator = terms.segment.counts, self.registers.width, self.evaluator
        vectors, segment = count // width, terms.segment._replace(counts=(count // width,))
        block = Block(self.nest, [Vector((*self.vectors[0].offsets, 0), width)])
        block.sums = {0: self.registers.vector(width)}
        evaluator.clear(block.sums[0])
        sources = [with_terms_as_lanes(each, width) for each in terms.sources]
        moved = block._add_all(terms._replace(segment=segment, sources=sources))
        self.sums[0] = evaluator.binary("add", self.sums[0], evaluator.total(block.sums[0]), 1)
        for term in range((vectors - moved) * width, count - moved * width):
            self._term(terms, term)

    def _over(self, terms: Terms, level: int) -> int:
        """Loops over terms. Returns how many terms of this level the pointers have moved on."""
        counts = terms.segment.counts
        if level == len(counts):
            self._term(terms, 0)
            return 0
        count = counts[level]
        if self.nest.run.sums_rows or level < len(counts) - 1 or isinstance(count, Count):
            with self.nest.counted_down(word(Word.COUNT) if self.nest.run.sums_rows else count):
                self._advance(terms, level, self._over(terms, level + 1))
            return count
        if count * min(4, len(self.vectors)) <= STRAIGHT:
            self._terms(terms, count)
            return 0
        together = max(4 if len(self.vectors) == 1 else 2, 1 + len(self.waiting))
        rounds, rest = divmod(count, together)
        with self.nest.counted_down(rounds):
            self._terms(terms, together)
            self._advance(terms, level, 0, together)
        self._terms(terms, rest)
        return count - rest

    def _terms(self, terms: Terms, count: int) -> None:
        """Add the next terms of each sum. In fast code, each term goes to the part that has waited longest."""
        for term in range(count):
            self._term(terms, term)
            self.waiting.append(self.sums)
            self.sums = self.waiting.pop(0)

    def _begin_parts(self) -> None:
        """Begin further parts of sums in fast code: an addition takes four cycles, and two can begin in each cycle."""
        if self.evaluator.fast and not self.nest.run.sums_rows:
            for _ in range(min(self.most_parts, -(-8 // len(self.vectors))) - 1):
                more = {n: self.registers.vector(lanes.width) for n, lanes in enumerate(self.vectors)}
                for register in more.values():
                    self.evaluator.clear(register)
                self.waiting.append(more)

    def _over_listed(self, terms: Terms) -> None:
        """Loop over the listed terms, the only level."""
        with self.nest.listed() as entry:
            for source in terms.pointers:
                by: Any = source.terms[0] if source.terms else 0
                if by == 1:
                    source.index, source.scale = entry, 8
                elif by:
                    source.index = self.registers.integer()
                    self.code.integer("imul", source.index, entry, 8 * by)
            self._term(terms, 0)

    def _advance(self, terms: Terms, level: int, moved: int, taken: int = 1) -> None:
        """Move all pointers on by the terms taken of a level, and back over the terms of the next level."""
        for source in terms.pointers:
            if source.list:
                self.code.integer("add", source.list, 4 * taken)
            elif source.terms:
                strides: Any = source.terms[level], source.terms[level + 1] if moved else 0
                if distance := strides[0] * taken - strides[1] * moved:
                    self.code.integer("add", source.base, 8 * distance)

    def _values_for_all(self, terms: Terms) -> Iterator[Known]:
        """Values that are the same for all terms. A loop stores only to its target and to weights, which differ."""
        for source in terms.pointers:
            if not any(source.terms) and source.list is None:
                yield from (source.value(lanes, 0, self.widest) for lanes in self.vectors)

    # --- terms -------------------------------------------------------------------------------------------------------

    def _term(self, terms: Terms, term: int) -> None:
        """One term of each sum. A value that is read several times is loaded once."""
        sources = {slot: source for slot, source in enumerate(terms.sources) if isinstance(source, Source)}
        values = [{slot: each.value(v, term, self.widest) for slot, each in sources.items()} for v in self.vectors]
        reads = Counter([of_sum[slot] for of_sum in values for slot in terms.reads if slot in of_sum])
        shares = len(self.vectors) > 1 and terms.segment.template == PRODUCT
        fewest = min([reads[value] for value in reads if not value.is_spread], default=0) if shares else 0
        spread = [value for value in reads if fewest > 1 and value.is_spread and value.place.index != RAX]
        # Zen 4 copies a number to all lanes in the units that add, unless a multiplication reads it from memory.
        embedded = spread if self.nest.writer.form.embeds else []
        loaded: dict[Known, Operand] = {value: value.place._replace(spread=value.size // 8) for value in embedded}
        # Zen 4 adds sooner after two multiplications. Of the first two, the second still loads its vector.
        in_pairs = {reads[value] for value in spread} == {2}
        products: list[tuple[Vec, Operand]] = []
        old = self.evaluator.read(terms.of_due[0].value(self.vectors[0], term, self.widest)) if terms.due else None
        for n, lanes in enumerate(self.vectors):
            leaves: list[Operand] = []
            for slot, source in enumerate(terms.sources):
                if isinstance(source, float):
                    leaves.append(self.evaluator.constant(source, lanes.width))
                elif old and terms.due and slot == terms.due.slot:
                    updated = self._updated(source, terms.of_due[1], old, lanes, term)
                    self.registers.share(updated, terms.reads.count(slot) - 1)
                    leaves.append(updated)
                else:
                    value = values[n][slot]
                    leaf: Any = self._leaf(source, value, term, reads[value], loaded)
                    if isinstance(leaf, Vec):
                        leaf = Vec(leaf.number, 8 * lanes.width)
                    elif leaf.spread:
                        leaf = leaf._replace(spread=lanes.width)
                    leaves.append(leaf)
            self._add(terms.segment.template, leaves, n, products)
            if not in_pairs or n % 2 or not (self.registers.free or n):
                for total, product in products:
                    self.code.vector(f"vadd{'pd' if total.size > 8 else 'sd'}", total, total, product)
                    self.evaluator.release(product)
                products.clear()
            if self.target:
                self._store(self.target, n)
        if old:
            self.registers.release(old)

    def _leaf(self, source: Source, value: Known, term: int, reads: int, loaded: dict[Known, Operand]) -> Operand:
        """A loaded operand, or one in a register if it is fixed, read several times, equal in all lanes, or listed."""
        if value in loaded:
            return loaded[value]
        if source.list:
            self.code.integer("movsxd", RAX, Mem(source.list, 4 * term))
        if reads == 1 and not value.is_spread and not source.list and value not in self.registers.fixed:
            return value.place
        register = loaded[value] = self.evaluator.read(value)
        self.registers.share(register, reads - 1)
        return register

    def _add(self, template: Expr, leaves: Sequence[Operand], n: int, products: list[tuple[Vec, Operand]]) -> None:
        """Add a term to its sum, or append both to the products. A sum without a start begins as its first term."""
        total, width = self.sums.get(n), self.vectors[n].width
        if total is not None and self.evaluator.fast and isinstance(template, Apply) and template.primitive == "mul":
            first, second = (self.evaluator.evaluate(operand, leaves, width) for operand in template.operands)
            if isinstance(first, Mem):
                first, second = second, first
            one = self.evaluator.in_register(first, width)
            self.code.vector(f"vfmadd231{'pd' if width > 1 else 'sd'}", total, one, second)
            self.evaluator.release(one, second)
            return
        value = self.evaluator.evaluate(template, leaves, width)
        if total is not None:
            products.append((total, value))
        else:
            self.sums[n] = self.evaluator.in_own_register(value, width)

    def _updated(self, weights: Source, factor: Source, old: Vec, lanes: Vector, term: int) -> Vec:
        """Make the deferred update of a vector of weights: `p -= rate * (old * factor)`. Returns the new weights."""
        width, by = lanes.width, self._leaf(factor, factor.value(lanes, term, lanes.width), term, 1, {})
        self.registers.share(old)
        new, rate = (each._replace(size=8 * width) for each in (old, self.evaluator.read(self.nest.rate)))
        place = weights.memory(lanes, term)
        for name, operand in (("mul", by), ("mul", rate), ("add", place)):
            new = self.evaluator.binary(name, new, operand, width)
        self.evaluator.store(place, new)
        return new
