"""The update as machine code, written from the optimiser's expressions.

Whole vectors of parameters come first, then the remaining parameters one by one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from zoomgrad.engines.graph.expr import Apply, Expr, Leaf
from zoomgrad.engines.graph.optimisers import BATCH, RATE, Optimiser
from zoomgrad.engines.kernel.buffers import address
from zoomgrad.engines.lengths.conductor import Conductor, ConductorInNumPy, Member, Shared
from zoomgrad.engines.machine import target
from zoomgrad.engines.machine.encode import Assembler, Mem
from zoomgrad.engines.machine.expression import Evaluator, NoVectors
from zoomgrad.engines.machine.memory import Memory, caller
from zoomgrad.engines.machine.powers import are_those_of_libm
from zoomgrad.engines.machine.registers import OutOfRegisters, Registers
from zoomgrad.engines.machine.section import function
from zoomgrad.engines.machine.target import T, Target, W

LANES = 8
"""Each number of an update is in memory this many times, for the widest vector."""


class ConductorInMachineCode(Conductor):
    """Updates all parameters by one call. Code for numbers that are 1.0 does not divide by them.

    Raises NoVectors or OutOfRegisters if machine code can't compute this optimiser's update.
    """

    def __init__(self, optimiser: Optimiser, members: Sequence[Member], shared: Shared) -> None:
        super().__init__(optimiser, members, shared)
        self._names = (RATE.name, *optimiser.factors, BATCH.name)
        self._target = target.native()
        buffers: list[Any] = [shared.p, shared.q, *shared.states]
        count = len(shared.p)
        whole = count - count % self._target.width if are_those_of_libm() else 0
        self._places = array("q", [whole, count, *(address(memoryview(each)) for each in buffers)])
        none: frozenset[str] = frozenset()
        self._functions = {none: self._written(none)}

    def update(self, index: int, rate: float, batch: int) -> None:
        numbers = [*self._optimiser.numbers(index, rate), float(batch)]
        ones = frozenset(name for name, number in zip(self._names, numbers) if number == 1.0)
        if ones not in self._functions:
            self._functions[ones] = self._written(ones)
        self._functions[ones][1](array("d", [number for number in numbers for _ in range(LANES)]), self._places)

    def _written(self, ones: frozenset[str]) -> tuple[Memory, Callable[[Any, Any], None]]:
        code = write_update(self._optimiser, self._target, ones)
        content, labels = code.finish()
        memory = Memory(content, {name: labels[name] for name in code.functions})
        return memory, caller(memory.start)


def conductor_for(optimiser: Optimiser, members: Sequence[Member], shared: Shared) -> Conductor:
    """A conductor in machine code; in NumPy for an update that machine code can't compute."""
    try:
        return ConductorInMachineCode(optimiser, members, shared)
    except (NoVectors, OutOfRegisters):
        return ConductorInNumPy(optimiser, members, shared)


def write_update(optimiser: Optimiser, to: Target, ones: Set[str] = frozenset()) -> Assembler:
    """The function that updates every parameter. ones: the numbers of the update that are 1.0.

    RDI: the address of the numbers of the update, each in all lanes. RSI: the address of the index where whole vectors
    end, the number of parameters, and the addresses of p, q and the states.
    """
    code = Assembler()
    registers = Registers(to, code)
    evaluator = Evaluator(code, to, registers, powers=False)
    buffers, numbers = ("p", "q", *optimiser.states), (RATE.name, *optimiser.factors, BATCH.name)
    slots = {name: str(slot) for slot, name in enumerate((*buffers, *numbers))}
    steps = [(name, Leaf("p") - expr if name == "p" else expr) for name, expr in optimiser.steps()]
    with function(code, "update", room=8):
        registers.prefer_kept()
        at, *bases = (registers.integer() for _ in ("at", *buffers))
        for number, base in enumerate(bases, start=2):
            code.integer("mov", base, Mem(T, 8 * number))
        code.integer("mov", at, 0)
        leaves = [Mem(base, 0, at, 8) for base in bases]
        leaves += [Mem(W, 8 * LANES * number) for number in range(len(numbers))]
        for limit, width in enumerate((to.width, 1)):
            again, end = code.new_label(), code.new_label()
            code.label(again)
            code.integer("cmp", at, Mem(T, 8 * limit))
            code.jump(end, "ge")
            for name, expr in steps:
                value = evaluator.evaluate(_prepared(expr, slots, ones), leaves, width)
                result = evaluator.in_register(value, width)
                evaluator.store(leaves[int(slots[name])], result.register)
                evaluator.release(result)
            zero = registers.vector(width)
            evaluator.clear(zero)
            evaluator.store(leaves[1], zero)
            registers.release(zero)
            code.integer("add", at, width)
            code.jump(again)
            code.label(end)
            code.clear_upper()
    return code


def _prepared(expr: Expr, slots: Mapping[str, str], ones: Set[str]) -> Expr:
    """The expression over slots, without divisions by 1.0."""
    if isinstance(expr, Leaf):
        return Leaf(slots[expr.name])
    if not isinstance(expr, Apply):
        return expr
    last = expr.operands[-1]
    if expr.primitive == "div" and isinstance(last, Leaf) and last.name in ones:
        return _prepared(expr.operands[0], slots, ones)
    return Apply(expr.primitive, tuple(_prepared(operand, slots, ones) for operand in expr.operands))
