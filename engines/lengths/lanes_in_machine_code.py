"""Lanes -> machine code that updates all parameters: whole vectors first, then unsure lanes and the rest one by one."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any

from zoomgrad.engines.graph.expr import Apply, Expr, leaves
from zoomgrad.engines.graph.optimisers import BATCH, RATE, UPDATE, Optimiser
from zoomgrad.engines.lengths.lanes import Lanes, buffers, factors, numbers
from zoomgrad.engines.machine.encode import RAX, RCX, Assembler, Mem, Reg, Vec
from zoomgrad.engines.machine.expression import MASK, NOT_EQUAL, Evaluator, Operand
from zoomgrad.engines.machine.powers import are_those_of_libm
from zoomgrad.engines.machine.registers import Registers
from zoomgrad.engines.machine.target import Target, W, word

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
FUSED = {"fma": "vfmadd{}pd", "fnma": "vfnmadd{}pd"}
"""Primitive -> instruction, without its digits. The result of 213 replaces the first factor, that of 231 the addend."""
ALL_BUT_SIGN = struct.pack("<q", 2**63 - 1)


class Word(IntEnum):
    """The words of 8 bytes at T, in order: the fields of `Course`, then what all courses share."""

    MEMBERS = 0
    PLACES = 1
    ROW = 2
    ROWS = 3
    STEPS = 4
    BATCH = 5
    TAKEN = 6
    UPDATE = 7
    """The number of updates so far."""
    RATES = 8
    LOSSES = 9
    LEARNS = 10
    STEP = 11
    """The number of recorded losses, all finite."""
    OF_MEMBERS = 12
    """The address of the words of the members: see `in_machine_code`."""
    LIST = 13
    """The address of the list of parameters to update one by one. An entry is the index of a vector's first parameter,
    and a bit for each lane."""
    END = 14
    """Where the list ends."""
    BUFFERS = 15
    """The addresses of p, q and the states."""


class LaneEvaluator(Evaluator):
    """Knows the primitives that only lanes have."""

    def _call(self, expr: Apply, leaves: Any, width: int) -> Vec:
        if width == 1:
            return super()._call(expr, leaves, width)
        values = [self.evaluate(operand, leaves, width) for operand in expr.operands]
        if expr.primitive in FUSED:
            return self._fused(FUSED[expr.primitive], values, width)
        if expr.primitive == "abs":
            values.append(self.code.constant(ALL_BUT_SIGN * width))
        first = self.in_register(values[0], width) if len(values) == 2 else None
        self.release(first or values[0], *values[1:])
        to = self.registers.vector(width)
        self.code.vector(INSTRUCTIONS[expr.primitive], to, first, values[-1])
        return to

    def _fused(self, name: str, operands: Sequence[Operand], width: int) -> Vec:
        """The sum of a product and an addend, in the register of the first factor if nothing else uses it."""
        one, other, addend = operands
        if isinstance(one, Vec) and self.registers.may_change(one):
            to, factor, last, order = one, other, addend, 213
        else:
            to, factor, last, order = self.in_own_register(addend, width), one, other, 231
        first = self.in_register(factor, width)
        self.code.vector(name.format(order), to, first, last)
        self.release(first, last)
        return to

    def write(self, statements: Mapping[str, Expr], later: Iterable[str], slots: Any, width: int) -> None:
        """Compute slots. later: slots that are read after the last statement, one entry for each read."""
        uses = Counter([*_reads(statements), *later])
        for slot, expr in statements.items():
            slots[int(slot)] = self.in_own_register(self.evaluate(expr, slots, width), width)
            self.registers.share(slots[int(slot)], uses[slot] - 1)

    def leave_unsure(self, unsure: Vec, at: Reg, places: Sequence[Mem], results: Sequence[Vec]) -> None:
        """Put the old numbers back into unsure lanes, and add these lanes to the list."""
        code, zero = self.code, self.registers.vector(self.target.width)
        self.clear(zero)
        mask = MASK if self.target.masks else unsure
        code.vector("vcmppd", mask, unsure, zero, immediate=NOT_EQUAL)
        code.vector("kmovb" if self.target.masks else "vmovmskpd", RAX, None, mask)
        with code.unless("e", RAX, 0):
            self.append(at)
            for place, register in zip(places, results):
                self.blend(register, register, place, mask)
        self.registers.release(zero, unsure)

    def append(self, at: Reg) -> None:
        """Add the lanes marked in RAX to the list. at: the index of the vector's first parameter."""
        self.code.integer("mov", RCX, word(Word.END))
        self.code.integer("mov", Mem(RCX), at)
        self.code.integer("mov", Mem(RCX, 8), RAX)
        self.code.integer("add", word(Word.END), 16)


class UpdateWriter:
    """Writes the update of `count` parameters, which also sets their gradients to 0.

    The code expects the words at T, and at W the numbers of an update, with room for COPIES of each.
    """

    def __init__(self, code: Assembler, target: Target, optimiser: Optimiser, count: int) -> None:
        self._code, self._optimiser, self._count = code, optimiser, count
        self._registers = Registers(target, code)
        self._registers.prefer_kept()
        self._evaluator = LaneEvaluator(code, target, self._registers, powers=are_those_of_libm())
        take = self._registers.integer
        self._at, self._entry, self._marks = take(), take(), take()
        self._bases = [take() for _ in buffers(optimiser)]
        self._places = [Mem(base, 0, self._at, 8) for base in self._bases]
        self._slots: Any = dict(enumerate(self._places))
        for number in range(len(numbers(optimiser))):
            self._slots[len(self._slots)] = Mem(W, 8 * COPIES * number)

    def write(self, update: Lanes, width: int, one: Lanes) -> None:
        """Update whole vectors of that width, then other parameters one by one. Raises OutOfRegisters."""
        for number, base in enumerate(self._bases, start=Word.BUFFERS):
            self._code.integer("mov", base, word(number))
        self._set_numbers()
        self._over_vectors(update, width)
        self._code.plain("vzeroupper")
        self._over_list(one)

    def _set_numbers(self) -> None:
        """Compute the numbers of the update: the rate is the next one, and factors depend on the update's number."""
        code, evaluator = self._code, self._evaluator
        places = dict(zip(numbers(self._optimiser), list(self._slots.values())[len(self._places) :]))
        number = Vec(0, 8)
        code.integer("mov", RAX, word(Word.RATES))
        evaluator.load(number, Mem(RAX))
        evaluator.store(places[RATE.name], number)
        code.integer("add", word(Word.RATES), 8)
        code.integer("add", word(Word.UPDATE), 1)
        for name, which in ((BATCH.name, Word.BATCH), (UPDATE.name, Word.UPDATE)):
            code.vector("vcvtsi2sd", number, number, word(which))
            evaluator.store(places[name], number)
        for slot, expr in factors(self._optimiser).items():
            value = evaluator.in_register(evaluator.evaluate(expr, self._slots, 1), 1)
            evaluator.store(self._slots[int(slot)], value)
            evaluator.release(value)

    def _over_vectors(self, update: Lanes, width: int) -> None:
        """Update whole vectors, and list what is left: unsure lanes, and the parameters after the last vector."""
        code, evaluator = self._code, self._evaluator
        slots, whole = dict(self._slots), self._count // width * width
        copies = self._registers.vector(width)
        for place in list(slots.values())[len(self._places) :]:
            evaluator.spread(copies, place)
            evaluator.store(place, copies)
        self._registers.release(copies)
        evaluator.write(update.shared, [*_reads(update.statements), *update.shared], slots, width)
        code.integer("mov", RAX, word(Word.LIST))
        code.integer("mov", word(Word.END), RAX)
        if whole:
            with code.counted_up(self._at, whole, width):
                self._step(update, slots, width)
        self._registers.release(*(slots[int(slot)] for slot in update.shared))
        if whole < self._count:
            code.integer("mov", self._at, whole)
            code.integer("mov", RAX, (1 << self._count - whole) - 1)
            evaluator.append(self._at)

    def _over_list(self, one: Lanes) -> None:
        """Update the listed parameters one by one."""
        code, at, entry, marks = self._code, self._at, self._entry, self._marks
        lanes = code.new_label()
        code.integer("mov", entry, word(Word.LIST))
        with code.repeated() as end:
            code.jump(end, "ge", entry, word(Word.END))
            code.integer("mov", at, Mem(entry))
            code.integer("mov", marks, Mem(entry, 8))
            code.label(lanes)
            code.integer("mov", RAX, marks)
            code.integer("and", RAX, 1)
            with code.unless("e"):
                self._step(one, dict(self._slots), 1)
            code.integer("add", at, 1)
            code.integer("shr", marks, 1)
            code.jump(lanes, "ne")
            code.integer("add", entry, 16)

    def _step(self, update: Lanes, slots: Any, width: int) -> None:
        """Update a vector of parameters."""
        self._evaluator.write(update.statements, [*update.results.values(), update.unsure], slots, width)
        results = [slots[int(update.results[name])] for name in buffers(self._optimiser)]
        if update.unsure:
            self._evaluator.leave_unsure(slots[int(update.unsure)], self._at, self._places, results)
        for place, register in zip(self._places, results):
            self._evaluator.store(place, register)
        self._registers.release(*results)


def _reads(statements: Mapping[str, Expr]) -> Iterator[str]:
    """The slots that statements read, with repetitions."""
    return (leaf.name for expr in statements.values() for leaf in leaves(expr))
