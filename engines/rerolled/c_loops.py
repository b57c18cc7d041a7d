"""Loops -> C: nests over the workspace, their lanes in vectors and blocks of accumulators.

What is written for a loop: counted loops over the outer lanes; inside, a block of lanes, each with its accumulator;
the segments' loops over terms; the stores. GNU vector types and constant trip counts leave an optimiser little to find
out, and a compiler that has none, little to lose.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Optional

from engines.compiled.c_runtime import COLUMNS, UPDATE
from engines.compiled.c_source import PARAMETER_OF, Source
from engines.graph.expr import ATOM_PRECEDENCE, INFIX, Apply, C, Expr, Literal, Text, number
from engines.rerolled import runtime
from engines.rerolled.groups import Phase
from engines.rerolled.loops import LANE_NAMES, TERM_NAMES, Access, Loop, Loops, Operand, Segment, Table, affine, updates_in_place
from engines.rerolled.zeros import Skipping, Span, skipping


@dataclass(frozen=True)
class Form:
    """What the C looks like; nothing in it changes a bit of the result."""

    width: int = 1
    """Doubles in a vector; 1: no vectors."""
    accumulators: int = 8
    """Lanes, or vectors of them, that a block keeps in registers."""
    piece: int = 60
    """A function ends after so many lines."""
    sparse: bool = False
    """Whether inputs that are 0.0 are skipped."""


UNROLLED = 64
"""Places of a table up to which they are written into the code instead."""


def c_source(loops: Loops, form: Form) -> Source:
    """The C of both passes and of training."""
    skips = skipping(loops) if form.sparse else None
    writer = _Writer(loops, form, skips)
    values, gradients, sinks = (
        writer.phase(name, phase)
        for name, phase in (("values", Phase.FORWARD), ("gradients", Phase.BACKWARD), ("sinks", Phase.SINK))
    )
    in_place = updates_in_place(loops)
    descend = writer.phase("descend", Phase.SINK, in_place=True) if in_place else ""
    p, q = loops.area("p"), loops.area("q")
    start = loops.area("k").start
    live_ints = skips.inputs[1] - skips.inputs[0] + 2 if skips else 0
    workspace = loops.workspace + ALIGNMENT + live_ints // 2 + 1
    text = "\n".join(
        [
            runtime.HEAD.format(
                inputs=loops.inputs, parameters=loops.parameters, workspace=workspace, outputs=len(loops.outputs)
            ),
            *(f"double {name}({', '.join(['double'] * arity)});" for name, arity in sorted(writer.calls)),
            *([runtime.INLINE] if writer.widths else []),
            *(_vectors(width) for width in sorted(writer.widths)),
            COLUMNS.format(inputs=loops.inputs, parameters=loops.parameters, export=""),
            UPDATE.format(export=""),
            *writer.tables,
            *([_live(loops, skips, form.width)] if skips else []),
            values,
            gradients,
            sinks,
            descend,
            runtime.RUNTIME.format(
                export="",
                p=p.start,
                q=q.start,
                size=p.stop - p.start,
                numbers="".join(f"    w[{start + at}] = {number(x)[0]};\n" for at, x in enumerate(loops.numbers)),
                take_parameters=_copies(loops, 0, "w[{place}] = p[{index}]"),
                take_gradients=_copies(loops, q.start - p.start, "w[{place}] = q[{index}]"),
                give_parameters=_copies(loops, 0, "p[{index}] = w[{place}]"),
                give_gradients=_copies(loops, q.start - p.start, "q[{index}] = w[{place}]"),
                give_outputs="".join(
                    f"    y[{index}] = {_leaf(output)};\n" for index, output in enumerate(loops.outputs)
                )
                or "    (void)w, (void)y;\n",
                loss=_leaf(loops.loss),
                **(runtime.SKIPPING if skips else runtime.DENSE),
                descend=runtime.DESCEND.format(live=", live" if skips else "") if in_place else "",
            ),
        ]
    )
    return Source([text], workspace)


ALIGNMENT = 8
"""Doubles by which a workspace may have to move to begin at a multiple of 64 bytes."""


class _Block(NamedTuple):
    """A vector of lanes: how far it lies from where the loops stand, one offset for each lane count."""

    offsets: tuple[int, ...]
    width: int


class _Pointer(NamedTuple):
    """The moving part of an access, as a C expression."""

    name: str
    constant: int
    lanes: tuple[int, ...]

    def there(self, block: _Block, width: int) -> str:
        """What lies there."""
        at = self.constant + sum(stride * offset for stride, offset in zip(self.lanes, block.offsets))
        if width == 1:
            return f"{self.name}[{at}]"
        return f"AT{width}({self.name} {'-' if at < 0 else '+'} {abs(at)})" if at else f"AT{width}({self.name})"

    def read(self, block: _Block) -> str:
        """The same in every lane, where it does not move with them."""
        if block.width > 1 and not self.lanes[-1]:
            return _all(self.there(block, 1), block.width)
        return self.there(block, block.width)


class _Writer:
    def __init__(self, loops: Loops, form: Form, skips: Optional[Skipping]) -> None:
        self.loops = loops
        self.form = form
        self.skips = skips
        """Which loops go over the list of inputs that are not zero."""
        self.away = loops.area("q").start - loops.area("p").start
        self.tables: list[str] = []
        self.widths: set[int] = {form.width} - {1} if skips else set()
        self.calls: set[tuple[str, int]] = set()

    def phase(self, name: str, phase: Phase, *, in_place: bool = False) -> str:
        """All loops of a phase as functions, and one that calls them."""
        functions: list[list[str]] = [[]]
        for number, loop in enumerate(self.loops.loops):
            if loop.phase == phase:
                for simple in _unrolled(loop):
                    if len(functions[-1]) > self.form.piece:
                        functions.append([])
                    functions[-1] += self._loop(number, simple, in_place)
        live, rate = ", const struct live *live" if self.skips else "", ", double rate" if in_place else ""
        texts, calls = [], []
        for index, lines in enumerate(functions):
            lists = live if any("live->" in line for line in lines) else ""
            head = f"static __attribute__((noinline)) void {name}_{index}(double *restrict w{lists}{rate})"
            texts.append("\n".join([head, *_braced("", lines or ["(void)w;"]), ""]))
            calls.append(f"{name}_{index}(w{lists and ', live'}{rate and ', rate'});")
        live = live if any(", live" in call for call in calls) else ""
        return "\n".join([*texts, f"static void {name}(double *restrict w{live}{rate})", *_braced("", calls), ""])

    def _loop(self, number: int, loop: Loop, in_place: bool) -> Iterator[str]:
        """A loop over its lanes, in as many nests as its inner lanes need."""
        called = [call for segment in loop.segments for call in _calls(segment.template)]
        self.calls.update(called)
        if not loop.counts:
            loop = _with_a_lane(loop)
        widths = _widths(loop.counts[-1], loop.room, self.form.width if _lies_in_vectors(loop) and not called else 1)
        summed = any(segment.counts for segment in loop.segments)
        # A sum waits for its last addition: others beside it fill the time. What is no sum waits for nothing.
        most = 1 if called else self.form.accumulators if summed else min(4, self.form.accumulators)
        at = 0
        while widths:
            row = list(itertools.takewhile(lambda width: width == widths[0], widths[:most]))
            same = len(list(itertools.takewhile(lambda width: width == row[0], widths)))
            repeats = same // len(row)
            yield from self._nest(number, loop, at, row, repeats, most, in_place)
            del widths[: repeats * len(row)]
            at += repeats * sum(row)

    def _nest(
        self, number: int, loop: Loop, at: int, row: Sequence[int], repeats: int, most: int, in_place: bool
    ) -> Iterator[str]:
        """Loops over lanes around a block: a row of vectors from inner lane `at` on, and of outer lanes several."""
        listed = self.skips.sinks.get(number) if self.skips else None
        limits, steps = list(loop.counts), [1] * len(loop.counts)
        limits[-1], steps[-1] = repeats * sum(row), sum(row)
        outer = [0]
        if len(limits) > 1 and listed != len(limits) - 2:
            steps[-2] = max(n for n in range(1, most // len(row) + 1) if limits[-2] % n == 0 or n == 1)
            outer = list(range(steps[-2]))
        starts = [at + sum(row[:index]) for index in range(len(row))]
        blocks = [
            _Block((*[0] * (len(limits) - 2), *[o] * (len(limits) > 1), start), width)
            for o in outer
            for start, width in zip(starts, row)
        ]
        moving = [limit > step for limit, step in zip(limits, steps)]
        lines = list(self._block(number, loop, blocks, moving, in_place))
        for lane in reversed(range(len(limits))):
            if lane == listed:
                lines = _over_live(LANE_NAMES[lane], lines)
            elif moving[lane]:
                lines = _over(LANE_NAMES[lane], limits[lane], steps[lane], lines)
        yield from lines if any(moving) else _braced("", lines)

    def _block(
        self, number: int, loop: Loop, blocks: Sequence[_Block], moving: Sequence[bool], in_place: bool
    ) -> Iterator[str]:
        """Accumulators, the segments' terms, and the stores."""
        self.widths.update(block.width for block in blocks if block.width > 1)
        accumulators = [(f"a{n}", block) for n, block in enumerate(blocks)]
        base = loop.target.base - (self.away if in_place else 0)
        pointer, declaration = self._pointer("o", loop.target._replace(base=base), moving, ())
        yield from declaration
        adds = loop.phase == Phase.SINK and not in_place
        begins = not adds and not loop.segments[0].counts
        if not begins:
            for name, block in accumulators:
                start = pointer.read(block) if adds else _all("0.0", block.width)
                yield f"{_type(block.width)} {name} = {start};"
        for started, segment in enumerate(loop.segments):
            lines = list(self._terms(loop, segment, accumulators, moving, begins and not started))
            listed = bool(self.skips) and self.skips.sums.get(number) == started
            for name, count in reversed(list(zip(TERM_NAMES, segment.counts))):
                lines = _over_live(name, lines) if listed else _over(name, count, 1, lines)
            yield from lines if segment.counts or started == 0 or not _declares(lines) else _braced("", lines)
        for name, block in accumulators:
            where = pointer.there(block, block.width)
            yield f"{where} -= {_all('rate', block.width)} * {name};" if in_place else f"{where} = {name};"

    def _terms(
        self,
        loop: Loop,
        segment: Segment,
        accumulators: Sequence[tuple[str, _Block]],
        moving: Sequence[bool],
        begins: bool,
    ) -> Iterator[str]:
        """One round of a segment: a term for each accumulator."""
        pointers: list[Optional[_Pointer]] = [None] * len(segment.operands)
        for slot, operand in enumerate(segment.operands):
            if isinstance(operand, Access):
                pointers[slot], declaration = self._pointer(f"r{slot}", operand, moving, segment.counts)
                yield from declaration
        texts = [
            {
                str(slot): (self._operand(operand, pointer, block, loop, segment, moving), ATOM_PRECEDENCE)
                for slot, (operand, pointer) in enumerate(zip(segment.operands, pointers))
            }
            for _, block in accumulators
        ]
        # What several accumulators take is read once.
        counted = [text for leaves in texts for text, _ in set(leaves.values())]
        shared = {text: f"s{n}" for n, text in enumerate(dict.fromkeys(t for t in counted if counted.count(t) > 1))}
        for text, name in shared.items():
            yield f"const {_type(accumulators[0][1].width)} {name} = {text};"
        for (name, block), leaves in zip(accumulators, texts):
            leaves = {slot: (shared.get(text, text), binds) for slot, (text, binds) in leaves.items()}
            spelled = _spell(segment.template, leaves, block.width)[0]
            yield f"{_type(block.width)} {name} = {spelled};" if begins else f"{name} += {spelled};"

    def _operand(
        self,
        operand: Operand,
        pointer: Optional[_Pointer],
        block: _Block,
        loop: Loop,
        segment: Segment,
        moving: Sequence[bool],
    ) -> str:
        if isinstance(operand, float):
            return _all(number(operand)[0], block.width)
        if isinstance(operand, Table):
            sizes = (*loop.counts, *segment.counts)
            strides = [_product(sizes[at + 1 :]) for at in range(len(sizes))]
            lanes, terms = strides[: len(loop.counts)], strides[len(loop.counts) :]
            first = sum(stride * offset for stride, offset in zip(lanes, block.offsets))
            moved = [stride * moves for stride, moves in zip(lanes, moving)]
            return f"w[{self._table(operand)}[{affine(first, moved, LANE_NAMES, terms, TERM_NAMES)}]]"
        assert pointer is not None
        return pointer.read(block)

    def _table(self, table: Table) -> str:
        places = ", ".join(map(str, table.places.reshape(-1).tolist()))
        text = f"[{table.places.size}] = {{{places}}};\n"
        for index, known in enumerate(self.tables):
            if known.endswith(text):
                return f"t{index}"
        self.tables.append(f"static const int t{len(self.tables)}{text}")
        return f"t{len(self.tables) - 1}"

    def _pointer(
        self, name: str, access: Access, moving: Sequence[bool], terms: Sequence[int]
    ) -> tuple[_Pointer, list[str]]:
        """The pointer, and its declaration where something moves it."""
        moved = [stride * moves for stride, moves in zip(access.lanes, moving)]
        if not any(moved) and not any(access.terms):
            return _Pointer("w", access.base, access.lanes), []
        text = affine(access.base, moved, LANE_NAMES, access.terms, TERM_NAMES)
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


def _at(operand: Operand, lane: int, digits: Sequence[int], term: int, steps: Sequence[int]) -> Operand:
    """One place of an operand."""
    if isinstance(operand, float):
        return operand
    if isinstance(operand, Table):
        return Access(int(operand.places[lane, term]), ())
    moved = sum(d * s for d, s in zip((*digits, *steps), (*operand.lanes, *operand.terms)))
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


def _spell(expr: Expr, leaves: Mapping[str, Text], width: int) -> Text:
    """An expression over vectors; over doubles as C has it."""
    if width == 1:
        return C.spell(expr, leaves)
    if isinstance(expr, Literal):
        return _all(number(expr.number)[0], width), ATOM_PRECEDENCE
    if not isinstance(expr, Apply):
        return leaves[expr.name]  # type: ignore[attr-defined]
    operands = [_spell(operand, leaves, width) for operand in expr.operands]
    if expr.primitive == "where":
        return f"where{width}({', '.join(text for text, _ in operands)})", ATOM_PRECEDENCE
    for at, operand in enumerate(expr.operands):
        if isinstance(operand, Apply) and operand.primitive in _COMPARISONS:
            operands[at] = (f"truth{width}({operands[at][0]})", ATOM_PRECEDENCE)
    return C.apply(expr.primitive, operands)


_COMPARISONS = ("less", "greater")


def _calls(expr: Expr) -> Iterator[tuple[str, int]]:
    """The libm functions that an expression calls, with how many arguments."""
    if isinstance(expr, Apply):
        if expr.primitive not in INFIX and expr.primitive != "where":
            yield expr.primitive, len(expr.operands)
        for operand in expr.operands:
            yield from _calls(operand)


def _vectors(width: int) -> str:
    copies = ", ".join(["a"] * width)
    return runtime.VECTORS.replace("@", str(width)).format(copies=copies)


def _type(width: int) -> str:
    return f"v{width}" if width > 1 else "double"


def _all(text: str, width: int) -> str:
    return f"all{width}({text})" if width > 1 else text


def _braced(head: str, lines: Sequence[str]) -> list[str]:
    return [f"{head}{{", *(f"    {line}" for line in lines), "}"]


def _over(name: str, count: int, step: int, lines: Sequence[str]) -> list[str]:
    return _braced(
        f"for (long long {name} = 0; {name} < {count}; {f'{name}++' if step == 1 else f'{name} += {step}'}) ", lines
    )


def _over_live(name: str, lines: Sequence[str]) -> list[str]:
    """A loop over the inputs that are not skipped."""
    return _braced(
        "for (long long n = 0; n < live->count; n++) ", [f"const long long {name} = live->at[n];", *lines]
    )


def _live(loops: Loops, skips: Skipping, width: int) -> str:
    """How that list is made, and when it must hold everything."""
    start, stop = skips.inputs

    def squares(spans: Sequence[Span]) -> str:
        return " + ".join(f"squares(w + {first}, {last - first})" for first, last in spans) or "0.0"

    return runtime.LIVE.format(
        start=start, count=stop - start, place=loops.workspace,
        weights=squares(skips.weights), factors=squares(skips.factors), inputs=squares([skips.inputs]),
        width=width, vector=_type(width), zero=_all("0.0", width), at=f"AT{width}" if width > 1 else "*",
        total=" + ".join(f"sum[{lane}]" for lane in range(width)) if width > 1 else "sum",
    )


def _declares(lines: Sequence[str]) -> bool:
    return any(line.startswith(("double *", "const ")) for line in lines)


def _product(sizes: Sequence[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def _leaf(operand: Operand) -> str:
    assert not isinstance(operand, Table)
    return number(operand)[0] if isinstance(operand, float) else f"w[{operand.base}]"


def _copies(loops: Loops, away: int, statement: str) -> str:
    """Nests that bring every parameter, or its gradient, from the caller's order to the loops' or back."""
    lines: list[str] = []
    for copy in loops.copies:
        names = "ijkl"
        place = affine(copy.place.base + away, copy.place.lanes, names)
        index = affine(copy.index.base, copy.index.lanes, names)
        body = [f"{statement.format(place=place, index=index)};"]
        for name, count in reversed(list(zip(names, copy.counts))):
            body = _braced(f"for (long long {name} = 0; {name} < {count}; {name}++) ", body)
        lines += body
    return "".join(f"    {line}\n" for line in lines or ["(void)w;"])
