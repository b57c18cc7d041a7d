"""Lanes -> machine code that updates all parameters: in vectors, but unsure lanes and the rest one by one."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Optional

from zoomgrad.engines.graph.expr import Apply, Leaf, leaves
from zoomgrad.engines.lengths.lanes import Lanes
from zoomgrad.engines.machine.encode import RAX, Assembler, Mem, Reg, Vec
from zoomgrad.engines.machine.expression import MASK, NOT_EQUAL, Evaluator, Operand
from zoomgrad.engines.machine.libm.powers import ALL_BUT_SIGN, powers_match_libm
from zoomgrad.engines.machine.registers import Registers
from zoomgrad.engines.machine.target import W, word

COPIES = 8
"""Room for each number of an update, so that the code can copy it into all lanes of the widest vector."""
INSTRUCTIONS = {
    "xor": "vxorpd",
    "or": "vorpd",
    "minus": "vpsubq",
    "sqrt": "vsqrtpd",
    "rsqrt": "vrsqrt14pd",
    "abs": "vandpd",
}
"""Primitive -> instruction."""
FUSED = {"fma": "vfmadd231pd", "fms": "vfmsub231pd", "fnma": "vfnmadd231pd"}
"""Primitive -> instruction. The result replaces the addend."""


class Word(IntEnum):
    """The words of 8 bytes at T, in order: the arguments of `Conductor.take`, then what all calls share."""

    ROW, ROWS, STEPS, BATCH, TAKEN, UPDATE, RATES, LOSSES, LEARNS = range(9)
    """UPDATE is the number of updates so far."""
    STEP = 9
    """The number of recorded losses, all finite."""
    MEMBERS, PLACES = 10, 11
    """For each row, the address of its member's words (see `in_machine_code`), and its number there."""
    BUFFERS = 12
    """The addresses of p, q and the states."""


class UpdateWriter(Evaluator):
    """Writes the update. Knows the primitives that only lanes have."""

    def __init__(self, code: Assembler, width: int, one: Lanes) -> None:
        """width: doubles in the widest vector. one: the update of a single parameter. Raises OutOfRegisters."""
        super().__init__(Registers(code, width), powers=powers_match_libm())
        self.registers.prefer_kept()
        take = self.registers.integer
        self._at, self._single, self._marks = take(), take(), take()
        self._bases = [take() for _ in one.results]
        self._numbers = [Mem(W, 8 * COPIES * number) for number in range(len(one.numbers))]
        self._one = one

    def write(self, update: Lanes, count: int) -> None:
        """Update that many parameters."""
        for number, base in enumerate(self._bases, start=Word.BUFFERS):
            self.code.integer("mov", base, word(number))
        self._set_numbers(update.width)
        self._over_vectors(update, count)
        self.code.plain("vzeroupper")

    def _set_numbers(self, width: int) -> None:
        """Compute the numbers of the update, and copy them into all lanes. The rate is the next one."""
        code, number = self.code, Vec(0, 8)
        rate, batch, update, *others = self._numbers
        code.integer("mov", RAX, word(Word.RATES))
        self.load(number, Mem(RAX))
        self.store(rate, number)
        code.integer("add", word(Word.RATES), 8)
        code.integer("add", word(Word.UPDATE), 1)
        for place, which in ((batch, Word.BATCH), (update, Word.UPDATE)):
            code.vector("vcvtsi2sd", number, number, word(which))
            self.store(place, number)
        slots: list[Operand] = [*map(Mem, self._bases), *self._numbers]
        for place, expr in zip(others, self._one.factors()):
            value = self.in_register(self.evaluate(expr, slots, 1), 1)
            self.store(place, value)
            self.release(value)
        copies = self.registers.vector(width)
        for place in self._numbers:
            self.spread(copies, place)
            self.store(place, copies)
        self.release(copies)

    def _over_vectors(self, update: Lanes, count: int) -> None:
        """Go from the last whole vector to the first one. Parameters after the last one come first, one by one."""
        code, at, marks, rest = self.code, self._at, self._marks, count % update.width
        again, marked = code.new_label(), code.new_label()
        code.integer("mov", at, count - rest)
        code.integer("mov", marks, (1 << rest) - 1)
        code.jump(marked)
        code.label(again)
        places, results, unsure = self._computed(update, at)
        if unsure:
            mask = MASK if self.registers.has_masks else unsure
            code.vector("vcmppd", mask, unsure, self.constant(0.0, update.width), immediate=NOT_EQUAL)
            code.vector("kmovb" if self.registers.has_masks else "vmovmskpd", marks, None, mask)
            with code.unless("e", marks, 0):  # unsure lanes keep their numbers for the update that follows
                for place, register in zip(places, results):
                    self.blend(register, register, place, mask)
            self.release(unsure)
        self._store(places, results)
        code.label(marked)
        with code.unless("e", marks, 0):
            self._one_by_one()
        code.integer("sub", at, update.width)
        code.jump(again, "ge")

    def _one_by_one(self) -> None:
        """Update the marked lanes of a vector."""
        code, single, marks, again = self.code, self._single, self._marks, self.code.new_label()
        code.plain("vzeroupper")
        code.integer("mov", single, self._at)
        code.label(again)
        code.integer("mov", RAX, marks)
        code.integer("and", RAX, 1)
        with code.unless("e"):
            places, results, _ = self._computed(self._one, single)
            self._store(places, results)
        code.integer("add", single, 1)
        code.integer("shr", marks, 1)
        code.jump(again, "ne")

    def _computed(self, update: Lanes, index: Reg) -> tuple[list[Mem], list[Vec], Optional[Vec]]:
        """Compute the update of a vector: where it is stored, its results, and what is not 0 in unsure lanes."""
        uses = Counter([*itertools.chain(*map(leaves, update.statements)), *update.results, update.unsure])
        places = [Mem(base, 0, index, 8) for base in self._bases]
        slots: Any = [*places, *self._numbers]
        for expr in update.statements:
            value = self.in_own_register(self.evaluate(expr, slots, update.width), update.width)
            self.registers.share(value, uses[Leaf(str(len(slots)))] - 1)
            slots.append(value)
        unsure = slots[int(update.unsure.name)] if update.unsure else None
        return places, [slots[int(slot.name)] for slot in update.results], unsure

    def _store(self, places: Sequence[Mem], results: Sequence[Vec]) -> None:
        for place, register in zip(places, results):
            self.store(place, register)
            self.release(register)

    def _call(self, expr: Apply, leaves: Any, width: int) -> Operand:
        if width == 1:
            return super()._call(expr, leaves, width)
        values = [self.evaluate(operand, leaves, width) for operand in expr.operands]
        if expr.primitive in FUSED:
            one, other, addend = values
            to, factor = self.in_own_register(addend, width), self.in_register(one, width)
            self.code.vector(FUSED[expr.primitive], to, factor, other)
            self.release(factor, other)
            return to
        if expr.primitive == "abs":
            values.append(self.code.constant(ALL_BUT_SIGN * width))
        first = self.in_register(values[0], width) if len(values) == 2 else None
        self.release(first or values[0], *values[1:])
        to = self.registers.vector(width)
        self.code.vector(INSTRUCTIONS[expr.primitive], to, first, values[-1])
        return to
