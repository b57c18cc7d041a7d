"""Lists of the inputs that are not 0.0, for steps that skip zeros.

A row's list is its length, a bound on the squares of all inputs, and the numbers of the inputs that it lists, in 4
bytes each. For each input, a mask of 8 bytes has a bit for each row that lists it: 6 kB for the 784 inputs of `mnist`,
which fit a first-level cache. A sink adds rows from the lowest bit on, so each gradient keeps its order of terms.
`rearrange/zeros` explains when skipping is safe: two bounds must be below LIMIT, otherwise a list holds every input.

Example: with vectors of 4, the inputs 0.0, 0.5, 0.0, 2.0 are not 0.0 in lanes 1 and 3, a mask of 1010. The table turns
this mask into the numbers 1, 3, 0, 2. All four are stored, but the list grows by 2, so the next store overwrites the
rest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import reduce
from typing import Any, ClassVar, Union

from zoomgrad.engines.machine.buffers.copies import in_steps
from zoomgrad.engines.machine.encode import R8, R9, RAX, RCX, RDI, RDX, RSI, RSP, Assembler, Mem, Reg, Vec
from zoomgrad.engines.machine.expression import MASK, NOT_EQUAL, Evaluator
from zoomgrad.engines.machine.target import BASE, W, Word, word
from zoomgrad.engines.rerolled.rearrange.zeros import list_size
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.spans import Span
from zoomgrad.engines.rerolled.step.step import Step

LIMIT = 1e300
"""Of both bounds: infinity and NaN are not below it."""
LIST_INPUTS, LIST_EVERY = "list_inputs", "list_every"
"""Routines. RSI: the address of the inputs; RDI: the address of the list. They keep RSI and RDI."""
SQUARES, ENTRIES = 8, 16
"""Offsets in a list."""


class Lists:
    """Writes the statements about lists. first, count: the place and number of the inputs that may be skipped."""

    def __init__(self, step: Step, evaluator: Evaluator) -> None:
        self.code, self.width = evaluator.code, evaluator.registers.width
        self.step = step
        self.evaluator = evaluator
        self.skips: Any = step.skips
        self.first, stop = step.skips.inputs if step.skips else (0, 0)
        self.count = stop - self.first
        self.base = BASE if step.own else W
        """The register with the address of a row's place 0."""

    # --- routines ----------------------------------------------------------------------------------------------------

    def write_routines(self) -> None:
        """Write LIST_EVERY and LIST_INPUTS."""
        code = self.code
        code.label(LIST_EVERY)
        with code.counted_up(RAX, self.count):
            code.integer("mov dword", Mem(RDI, ENTRIES, RAX, 4), RAX)
        code.integer("mov", Mem(RDI), RAX)
        code.plain("ret")
        code.label(LIST_INPUTS)
        code.integer("mov", R8, RSI)
        code.integer("mov", R9, RDI)
        self._one_and_squares(self.count)
        code.integer("mov", RSI, R8)
        code.integer("mov", RDI, R9)
        self.evaluator.store(Mem(RDI, SQUARES), Vec(0, 8))
        self.compare(word(Word.BOUND))
        code.jump(LIST_EVERY, "be")
        width = self.width
        wide = self.count // width if self.count >= 4 * width else 0  # a store writes entries beyond the last one
        code.integer("mov", RCX, 0)
        if wide:
            self._in_vectors(wide)
        if wide * width < self.count:
            with code.counted_up(RDX, self.count, start=wide * width):
                code.integer("mov dword", Mem(RDI, ENTRIES, RCX, 4), RDX)
                code.integer("mov", RAX, Mem(RSI, 0, RDX, 8))
                code.integer("shl", RAX, 1)  # without the sign
                with code.unless("e", RAX, 0):
                    code.integer("add", RCX, 1)
        code.integer("mov", Mem(RDI), RCX)
        code.plain("ret")

    def _in_vectors(self, rounds: int) -> None:
        """RCX counts entries, RDX goes through the inputs."""
        code, width, size = self.code, self.width, 4 * self.width
        zero, numbers, packed = Vec(0, 8 * width), Vec(1, size), Vec(2, size)
        marks = MASK if self.evaluator.registers.has_masks else Vec(3, 8 * width)
        self.evaluator.clear(zero)
        self.evaluator.clear(numbers)  # every lane starts with the number of the first input, 0
        # For each mask, its lanes, then the others.
        orders = (sorted(range(width), key=lambda lane: not mask >> lane & 1) for mask in range(1 << width))
        code.integer("lea", R8, code.constant(b"".join(struct.pack(f"<{width}i", *order) for order in orders)))
        with code.counted_up(RDX, rounds * width, width):
            code.vector("vcmppd", marks, zero, Mem(RSI, 0, RDX, 8), immediate=NOT_EQUAL)
            code.vector("kmovb" if self.evaluator.registers.has_masks else "vmovmskpd", RAX, None, marks)
            code.integer("imul", R9, RAX, size)
            code.vector("vpaddd", packed, numbers, Mem(R8, 0, R9, 1))
            self.evaluator.store(Mem(RDI, ENTRIES, RCX, 4), packed)
            code.integer("popcnt", RAX, RAX)
            code.integer("add", RCX, RAX)
            code.vector("vpaddd", numbers, numbers, code.constant(struct.pack("<i", width) * width))

    # --- bounds ------------------------------------------------------------------------------------------------------

    def compare(self, bound: Mem) -> None:
        """Compare LIMIT with a bound: `a` if the bound is below it, else `be`, also for NaN."""
        self.evaluator.load(Vec(1, 8), self.evaluator.constant(LIMIT, 1))
        self.code.vector("vucomisd", Vec(1, 8), None, bound)

    def _measure_weights(self, _: steps.Action) -> None:
        """`bound = 1 + the sum of the weights' squares`, because |x| <= 1 + x * x."""
        self._one_and_squares_of(self.skips.weights)
        self.evaluator.store(word(Word.BOUND), Vec(0, 8))

    def _check_factors(self, _: steps.Action) -> None:
        """List every input unless products with factors are bounded; add their bound to the bound on weights."""
        code = self.code
        self._one_and_squares_of(self.skips.factors)
        point_to_list(code, self.step, RDI, word(Word.CURRENT) if self.step.own else None)
        reach, other = Vec(0, 8), Vec(1, 8)
        code.vector("vmulsd", reach, reach, Mem(RDI, SQUARES))
        code.integer("mov", RAX, word(Word.TAKEN))
        code.integer("add", RAX, word(Word.COUNT) if self.step.own else 1)
        with code.unless("ne", RAX, word(Word.BATCH)):  # the row ends its batch
            code.integer("mov", RAX, word(Word.RATES))
            self.evaluator.load(other, Mem(RAX))
            code.vector("vmulsd", other, other, other)
            code.vector("vaddsd", other, other, self.evaluator.constant(1.0, 1))
            code.vector("vmulsd", reach, reach, other)
        self.evaluator.store(Mem(RSP, -16), reach)
        code.vector("vaddsd", other, reach, word(Word.BOUND))
        self.evaluator.store(word(Word.BOUND), other)
        self.compare(Mem(RSP, -16))
        with code.unless("a"):
            code.call(LIST_EVERY)

    def _one_and_squares_of(self, span: Span) -> None:
        """`1 + the sum of the squares of these places`, in xmm0."""
        self.code.integer("lea", RSI, Mem(self.base if self.step.is_own(span[0]) else W, 8 * span[0]))
        self._one_and_squares(span[1] - span[0])

    def _one_and_squares(self, count: int) -> None:
        """`1 + the sum of the squares of `count` doubles from RSI on`, in xmm0. Changes RSI, RDI and RCX."""
        code, width, evaluator = self.code, self.width, self.evaluator
        *sums, single = [evaluator.registers.vector(each) for each in (*[width] * 4, 1)]

        def add(step: int) -> None:
            kind, totals = ("pd", sums) if step > 1 else ("sd", [single])
            for number, total in enumerate(totals):
                square = evaluator.in_register(Mem(RSI, total.size * number), total.size // 8)
                code.vector(f"vmul{kind}", square, square, square)
                code.vector(f"vadd{kind}", total, total, square)
                evaluator.release(square)

        for each in (*sums, single):
            evaluator.clear(each)
        code.integer("mov", RCX, count)
        in_steps(code, (4 * width, 1), add, 8)
        total = evaluator.total(reduce(lambda one, other: evaluator.binary("add", one, other, width), sums))
        for other in (single, evaluator.constant(1.0, 1)):
            total = evaluator.binary("add", total, other, 1)
        evaluator.load(Vec(0, 8), total)
        evaluator.release(total)

    # --- lists --------------------------------------------------------------------------------------------------------

    def _list_inputs(self, action: steps.Action) -> None:
        self.code.integer("lea", RSI, Mem(W, 8 * self.first))
        point_to_list(self.code, self.step, RDI, None)
        self.code.call(LIST_EVERY if action == steps.LIST_EVERY_INPUT else LIST_INPUTS)

    def _turn(self, _: steps.Action) -> None:
        """Set, for each input, the bits of the rows that list it."""
        code = self.code
        masks = 8 * self.step.area("turned").start
        with code.counted_up(RAX, self.count):
            code.integer("mov", Mem(W, masks, RAX, 8), 0)
        code.integer("lea", RDI, Mem(W, 8 * self.step.area("lists").start))
        code.integer("mov", RCX, word(Word.COUNT))
        code.integer("mov", R8, 1)
        # No row is left if the first one has failed.
        with code.unless("e", RCX, 0), code.counted_down(RCX):
            code.integer("mov", RDX, Mem(RDI))
            code.integer("lea", RSI, Mem(RDI, ENTRIES))
            with code.unless("e", RDX, 0), code.counted_down(RDX):
                code.integer("movsxd", RAX, Mem(RSI))
                code.integer("or", Mem(W, masks, RAX, 8), R8)
                code.integer("add", RSI, 4)
            code.integer("add", R8, R8)
            code.integer("add", RDI, 8 * list_size(self.step.skips))

    WRITERS: ClassVar[dict[Union[steps.Action, type[steps.Statement]], Callable[..., None]]] = {
        steps.MEASURE_WEIGHTS: _measure_weights,
        steps.LIST_EVERY_INPUT: _list_inputs,
        steps.LIST_INPUTS: _list_inputs,
        steps.TURN_LISTS: _turn,
        steps.CHECK_FACTORS: _check_factors,
    }


def point_to_list(code: Assembler, step: Step, to: Reg, row: Union[Reg, Mem, None]) -> None:
    """The address of the list of one of the rows taken together, or, for None, of a row alone."""
    if row is None:
        code.integer("lea", to, Mem(W, 8 * step.area("live").start))
    else:
        code.integer("imul", to, row, 8 * list_size(step.skips))
        code.integer("lea", to, Mem(to, 8 * step.area("lists").start, W))
