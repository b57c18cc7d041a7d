"""Straight lines -> machine code: copy the code of each kind of line, and patch the places in it.

Writing an instruction takes microseconds, and an irregular graph needs hundreds of thousands. So each kind of line is
written once, as a *stencil* with holes for the places of its operands and its result. NumPy copies the stencils of all
lines, and fills the holes (Xu and Kjolstad, "Copy-and-patch compilation", OOPSLA 2021). A line finds the result of the
line before it in xmm0. A result that only the next line reads has no place.

Example: x, y, z and v have the places 8, 16, 17 and 24. The lines `u = x * y` and `v = z + u` have these stencils:

    vmovsd xmm0, [rbx + hole 1]         vaddsd xmm0, xmm0, [rbx + hole 0]
    vmulsd xmm0, xmm0, [rbx + hole 0]   vmovsd [rbx + hole 3], xmm0

The holes become 128 and 64, then 136 and 192: eight times the places.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.graph.expr import PYTHON, Apply, Expr, Literal
from zoomgrad.engines.machine.encode import Line, Mem, Vec
from zoomgrad.engines.machine.target import ALTERNATIVE, W
from zoomgrad.engines.rerolled.recover.loops import VECTOR, Access, Area, Loops
from zoomgrad.engines.rerolled.recover.templates import SLOTS
from zoomgrad.engines.rerolled.step.language import Place
from zoomgrad.engines.rerolled.step.plain import plain
from zoomgrad.engines.rerolled.step.step import Step
from zoomgrad.engines.straight.lower import ACCUMULATE, NUMBER, SEED, Code

if TYPE_CHECKING:
    from zoomgrad.engines.machine.nest import Writer

TO = len(SLOTS)
"""The hole of the result, after those of the operands."""
HOLES = [Mem(W, 0x10203000 + 8 * number) for number in range(TO + 1)]
"""Operands with distances that no code has."""
LAST = Vec(0, 8)
"""The result of the line before."""


class Kind(NamedTuple):
    """A kind of line. exponent: of a power."""

    primitive: str
    exponent: float
    operands: int
    last: int
    """The operand in LAST, or -1."""
    is_stored: bool

    @property
    def expr(self) -> Expr:
        """What a line computes, over SLOTS."""
        if self.primitive == SEED:
            return Literal(1.0)
        if self.primitive == "pow":
            return Apply("pow", (SLOTS[0], Literal(self.exponent)))
        if self.primitive == "where":  # its condition is 1.0 or 0.0
            return Apply("where", (Apply("less", (Literal(0.0), SLOTS[0])), *SLOTS[1:]))
        return Apply(self.primitive, SLOTS[: self.operands])


class Lines(NamedTuple):
    """The lines of a pass, in order."""

    kinds: Sequence[Kind]
    kind: Sequence[int]
    """Line -> the number of its kind."""
    places: Sequence[int]
    """For each line, what fills each of the HOLES."""


def straight(code: Code) -> Step:
    """Straight lines as the values and the gradients of a step without loops."""
    import numpy as np

    from zoomgrad.engines.rerolled.recover.places import copies_of  # which imports NumPy

    placing = _Placing(code)
    lines = {"values": placing.lines(0, code.backward), "gradients": placing.lines(code.backward, None)}
    if placing.end >> 28:  # distances have 31 bits
        raise Unavailable(f"its {placing.end:,} results are too far apart for a processor's instructions", ALTERNATIVE)
    parameters, outputs = placing.of[code.inputs :][: code.parameters], [placing.of[value] for value in code.outputs]
    copies, output_copies = (copies_of(np.array(each, int), np.arange(len(each))) for each in (parameters, outputs))
    loops = Loops(
        loops=[],
        areas=(*placing.areas, Area("v", placing.areas[-1].stop, -(-placing.end // VECTOR) * VECTOR)),
        numbers=tuple(struct.unpack(f"<{len(placing.numbers)}d", b"".join(placing.numbers))),
        copies=copies,
        output_copies=output_copies,
        loss=Access(placing.of[code.loss], ()),
        outputs=tuple(Access(output, ()) for output in outputs),
        inputs=code.inputs,
        parameters=code.parameters,
    )
    return replace(plain(loops), routines={"sinks": ()}, lines_of=lines)


class _Placing:
    """Gives every value a place, in order."""

    def __init__(self, code: Code) -> None:
        self.code = code
        packed = dict.fromkeys(struct.pack("<d", i[1]) for i in code.instructions if i[0] == NUMBER)
        self.numbers = {number: place for place, number in enumerate(packed)}
        """Bytes of a constant -> its place."""
        self.areas: list[Area] = []
        self.end = 0
        """The place of the next result."""
        sizes = {"k": len(packed), "p": code.parameters, "q": code.parameters, "x": code.inputs}
        for name, size in sizes.items():
            self.areas.append(Area(name, self.end, self.end - -size // VECTOR * VECTOR))
            self.end = self.areas[-1].stop
        _, p, self.q, x = (area.start for area in self.areas)
        self.of = [*range(x, x + code.inputs), *range(p, p + code.parameters)]
        """Value -> its place."""

    def lines(self, start: int, stop: Any) -> Lines:
        """The lines of the instructions from `start` to `stop`."""
        instructions, of, first = self.code.instructions, self.of, self.code.inputs + self.code.parameters
        kinds: dict[tuple[str, float, int, int], int] = {}
        kind, places = array("i"), array("i")
        last = -1
        for value, (primitive, *operands) in enumerate(instructions[start:stop], first + start):
            if primitive == NUMBER:
                of.append(self.numbers[struct.pack("<d", *operands)])
                continue
            exponent, to = 0.0, -1
            if primitive == "pow":
                exponent = instructions[operands.pop() - first][1]
            elif primitive in (ACCUMULATE, SEED):
                to = self.q + operands.pop(0)
            at = [of[operand] for operand in operands]
            from_last = operands.index(last) if last in operands else -1
            if primitive == ACCUMULATE:
                primitive, at = "add", [*at, to]
            if from_last >= 0 and self.code.reads[last] == 1:  # nothing else reads it
                kind[-1] -= 1
                self.end -= 1
            if to < 0:
                to, self.end = self.end, self.end + 1
            of.append(to)
            kind.append(2 * kinds.setdefault((primitive, exponent, len(at), from_last), len(kinds)) + 1)
            places.extend((*at, *[0] * (TO - len(at)), to))
            last = value
        return Lines([Kind(*key, is_stored) for key in kinds for is_stored in (False, True)], kind, places)


def write_lines(writer: Writer, name: str, lines: Lines) -> None:
    """Write a pass as a routine."""
    import numpy as np

    code = writer.code
    code.label(name)
    code.plain("vzeroupper")  # for calls
    kind, places = np.array(lines.kind, int), np.array(lines.places, int).reshape(-1, len(HOLES))
    stencils = {number: _stencil(writer, lines.kinds[number]) for number in sorted(set(lines.kind))}
    sizes = np.zeros(len(lines.kinds), int)
    sizes[list(stencils)] = [len(copied) for copied, _, _ in stencils.values()]
    first, lengths = len(code.code), sizes[kind]
    starts = lengths.cumsum() - lengths
    text = np.empty(lengths.sum(), np.uint8)
    for number, (copied, holes, uses) in stencils.items():
        which = np.flatnonzero(kind == number)
        at = starts[which, None]
        text[at + np.arange(len(copied))] = np.frombuffer(copied, np.uint8)
        for hole, offset in holes:
            distances = 8 * places[which, hole, None]
            text[at + offset + np.arange(4)] = distances.astype("<i4").view(np.uint8)
        for offset, label, more in uses:
            code.uses += [(place, label, more) for place in (first + offset + starts[which]).tolist()]
    if code.is_listed:
        spans = zip((first + starts).tolist(), lengths.tolist())
        code.lines += [Line(*span, _text(writer.step, lines, n)) for n, span in enumerate(spans)]
    code.code += text.tobytes()
    code.plain("ret")


def _stencil(writer: Writer, kind: Kind) -> tuple[bytes, list[tuple[int, int]], list[Any]]:
    """The code of a kind of line; the number and offset of each hole in it; and its uses of labels elsewhere."""
    code, start = writer.code, writer.code.place()
    writer.registers.reset()
    leaves: list[Any] = HOLES[:TO]
    if kind.last >= 0:
        leaves[kind.last] = writer.registers.vector(1)
    result = writer.in_register(writer.evaluate(kind.expr, leaves, 1), 1)
    if result != LAST:
        writer.load(LAST, result)
    if kind.is_stored:
        writer.store(HOLES[TO], LAST)
    text, uses = code.code[start[0] :], list[Any]()
    for at, label, more in code.uses[start[2] :]:
        if label in code.labels:
            struct.pack_into("<i", text, at - start[0], code.labels[label] - (at + 4) + more)
        else:
            uses.append((at - start[0], label, more))
    code.back_to(start)
    places = [struct.pack("<i", hole.disp) for hole in HOLES]
    holes = [(n, at) for at in range(len(text)) for n, place in enumerate(places) if text[at : at + 4] == place]
    return bytes(text), holes, uses


def _text(step: Step, lines: Lines, number: int) -> str:
    """A line as in the text form of loops. `last` is the result of the line before."""
    kind, at = lines.kinds[lines.kind[number]], len(HOLES) * number
    names = [step.spell(Place(place)) for place in lines.places[at : at + len(HOLES)]]
    if kind.last >= 0:
        names[kind.last] = "last"
    value = PYTHON.spell(kind.expr, {leaf.name: name for leaf, name in zip(SLOTS, names)})[0]
    return f"{names[TO] if kind.is_stored else 'last'} = {value}"
