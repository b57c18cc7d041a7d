"""Lanes -> machine code that updates whole vectors of parameters, and lists the lanes that it leaves as they were."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, Optional

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.graph.expr import Apply, Expr, Leaf, leaves
from zoomgrad.engines.graph.optimisers import Optimiser
from zoomgrad.engines.kernel.buffers import address
from zoomgrad.engines.kernel.program import Doubles
from zoomgrad.engines.lengths.lanes import Lanes, NoLanes, buffers, lanes, numbers
from zoomgrad.engines.machine import target
from zoomgrad.engines.machine.buffers.functions import function
from zoomgrad.engines.machine.encode import RAX, RCX, RDI, RSI, Assembler, Mem, Reg, Vec
from zoomgrad.engines.machine.expression import Evaluator, Value
from zoomgrad.engines.machine.memory import Memory, bound
from zoomgrad.engines.machine.powers import are_those_of_libm
from zoomgrad.engines.machine.registers import OutOfRegisters, Registers
from zoomgrad.engines.machine.target import T, Target, W

COPIES = 8
"""Room for each number of an update, so that the code can copy it into all lanes of the widest vector."""
WHOLE, LIST, BUFFERS = range(3)
"""The words that code reads through T: where whole vectors end, where the list of unsure lanes ends, and the addresses
of p, q and the states. An entry of the list is the index of a vector's first parameter, and a bit for each unsure lane.
"""
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
NOT_EQUAL = 4
"""The predicate of a comparison that is true for NaN."""


class LaneEvaluator(Evaluator):
    """Knows the primitives that only lanes have."""

    _ending: Set[str] = frozenset()
    """Slots that the current expression uses once, and no later one."""

    def evaluate(self, expr: Expr, leaves: Any, width: int) -> Value:
        value = super().evaluate(expr, leaves, width)
        return value._replace(is_ours=True) if isinstance(expr, Leaf) and expr.name in self._ending else value

    def _call(self, expr: Apply, leaves: Any, width: int) -> Value:
        values = [self.evaluate(operand, leaves, width) for operand in expr.operands]
        if expr.primitive in FUSED:
            return self._fused(FUSED[expr.primitive], values, width)
        if expr.primitive == "abs":
            values.append(Value(self.code.constant(ALL_BUT_SIGN * width)))
        first = self.in_register(values[0], width) if len(values) == 2 else None
        self.release(first or values[0], *values[1:])
        to = self.registers.vector(width)
        self.code.vector(INSTRUCTIONS[expr.primitive], to, first and first.register, values[-1].operand)
        return Value(to, True)

    def _fused(self, name: str, values: Sequence[Value], width: int) -> Value:
        """The sum of a product and an addend, in the register of the first factor if that is ours."""
        one, other, addend = values
        if one.is_ours:
            to, factor, last, order = self._in_own_register(one, width), other, addend, 213
        else:
            to, factor, last, order = self._in_own_register(addend, width), one, other, 231
        first = self.in_register(factor, width)
        self.code.vector(name.format(order), to, first.register, last.operand)
        self.release(first, last)
        return Value(to, True)

    def _in_own_register(self, value: Value, width: int) -> Vec:
        """A register of the value that nothing else uses."""
        if value.is_ours and isinstance(value.operand, Vec):
            return value.operand
        to = self.registers.vector(width)
        self.load(to, value.operand)
        return to

    def write(self, statements: Mapping[str, Expr], slots: dict[int, Any], ends: Mapping[str, Sequence[str]]) -> None:
        """Compute slots. ends: statement -> the slots that no later statement uses."""
        for slot, expr in statements.items():
            last = ends.get(slot, ())
            self._ending = {each for each in last if [*leaves(expr)].count(Leaf(each)) == 1}
            slots[int(slot)] = self._in_own_register(self.evaluate(expr, slots, self.target.width), self.target.width)
            self.registers.release(*(slots[int(each)] for each in last if each not in self._ending))

    def leave_unsure(self, unsure: Vec, at: Reg, places: Sequence[Mem], results: Sequence[Vec]) -> None:
        """Put the old numbers back into unsure lanes, and add these lanes to the list."""
        code, sure, zero = self.code, self.code.new_label(), self.registers.vector(self.target.width)
        self.clear(zero)
        mask = 1 if self.target.masks else unsure
        code.vector("vcmppd", mask, unsure, zero, immediate=NOT_EQUAL)
        if isinstance(mask, int):
            code.mask_to(RAX, mask)
        else:
            code.signs_to(RAX, mask)
        code.integer("cmp", RAX, 0)
        code.jump(sure, "e")
        code.integer("mov", RCX, Mem(T, 8 * LIST))
        code.integer("mov", Mem(RCX), at)
        code.integer("mov", Mem(RCX, 8), RAX)
        code.integer("add", RCX, 16)
        code.integer("mov", Mem(T, 8 * LIST), RCX)
        for place, register in zip(places, results):
            if isinstance(mask, int):
                code.vector("vblendmpd", register, register, place, mask=mask)
            else:
                code.vector("vblendvpd", register, register, place, immediate=mask.number << 4)
        code.label(sure)


class LoadedLanes:
    """Machine code for the lanes of an update of these buffers, and what the code reads and writes."""

    def __init__(self, optimiser: Optimiser, state: Sequence[Doubles], *, is_fast: bool) -> None:
        """state: p, q and the states. Raises NoLanes, OutOfRegisters or Unavailable."""
        self._optimiser, self._target, self._is_fast = optimiser, target.native(), is_fast
        count, width = len(state[0]), self._target.width
        buffers_: Sequence[Any] = state
        self.list = array("q", bytes(16 * (count // width + 1)))
        self._start = address(memoryview(self.list))
        self._numbers = array("d", bytes(8 * COPIES * len(numbers(optimiser))))
        self.words = array("q", [count - count % width, 0, *(address(memoryview(each)) for each in buffers_)])
        self._functions: dict[bool, tuple[Memory, Callable[[], None]]] = {}
        self.function(1)

    def function(self, batch: int) -> tuple[Memory, Callable[[], None]]:
        """The code for batches of that many steps, and a function that calls it with the numbers and `words`."""
        is_single = batch == 1
        if is_single not in self._functions:
            code = write_lanes(self._optimiser, self._target, is_single=is_single, is_fast=self._is_fast)
            memory = Memory(code.finish()[0])
            self._functions[is_single] = memory, bound(memory.start, self._numbers, self.words)
        return self._functions[is_single]

    def update(self, values: Sequence[float], batch: int) -> Iterator[int]:
        """Update whole vectors, when iterated, and yield the parameters of unsure lanes. values: of `numbers`.

        All updates use one list, so an iterator must end before the next one starts.
        """
        self._numbers[::COPIES] = array("d", values)
        self.words[LIST] = self._start
        self.function(batch)[1]()
        for at in range(0, (self.words[LIST] - self._start) // 8, 2):
            first, marks = self.list[at], self.list[at + 1]
            while marks:
                yield first + (marks & -marks).bit_length() - 1
                marks &= marks - 1


def load_lanes(optimiser: Optimiser, state: Sequence[Doubles], *, is_fast: bool = False) -> Optional[LoadedLanes]:
    """The lanes of an update; None where the processor, libm or the update has none."""
    try:
        if is_fast or are_those_of_libm():
            return LoadedLanes(optimiser, state, is_fast=is_fast)
    except (NoLanes, OutOfRegisters, Unavailable):
        pass
    return None


def write_lanes(optimiser: Optimiser, target: Target, *, is_single: bool, is_fast: bool = False) -> Assembler:
    """The function that updates whole vectors of parameters.

    RDI: the address of the numbers of the update, each with room for COPIES, which the code fills. RSI: that of
    `words`. Raises NoLanes and OutOfRegisters.
    """
    update = lanes(optimiser, target.width, is_single=is_single, is_fast=is_fast)
    code, width, names = Assembler(), target.width, buffers(optimiser)
    registers = Registers(target, code)
    evaluator = LaneEvaluator(code, target, registers)
    with function(code, "update", room=8):
        code.integer("mov", W, RDI)
        code.integer("mov", T, RSI)
        at, *bases = (registers.integer() for _ in ("at", *names))
        for number, base in enumerate(bases, start=BUFFERS):
            code.integer("mov", base, Mem(T, 8 * number))
        places = [Mem(base, 0, at, 8) for base in bases]
        slots: dict[int, Any] = dict(enumerate(places))
        copies = registers.vector(width)
        for number in range(len(numbers(optimiser))):
            place = slots[len(slots)] = Mem(W, 8 * COPIES * number)
            evaluator.spread(copies, place)
            evaluator.store(place, copies)
        registers.release(copies)
        evaluator.write(update.shared, slots, {})
        again, end = code.new_label(), code.new_label()
        code.integer("mov", at, 0)
        code.label(again)
        code.integer("cmp", at, Mem(T, 8 * WHOLE))
        code.jump(end, "ge")
        evaluator.write(update.statements, slots, _last_uses(update))
        results = [slots[int(update.results[name])] for name in names]
        if update.unsure:
            evaluator.leave_unsure(slots[int(update.unsure)], at, places, results)
        for place, register in zip(places, results):
            evaluator.store(place, register)
        code.integer("add", at, width)
        code.jump(again)
        code.label(end)
    return code


def _last_uses(update: Lanes) -> dict[str, list[str]]:
    """Statement -> the slots of statements that no later one uses."""
    last: dict[str, str] = {}
    for slot, expr in update.statements.items():
        last.update({leaf.name: slot for leaf in leaves(expr)})
    kept = {*update.results.values(), update.unsure}
    ends: dict[str, list[str]] = {}
    for slot in update.statements:
        if slot not in kept:
            ends.setdefault(last.get(slot, slot), []).append(slot)
    return ends
