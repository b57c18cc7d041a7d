"""Powers with libm's bits, without a call in 24 of 25 cases: of the exponents in EXPONENTS.

emit/powers.h explains the method: a result is first the sum of two doubles, `head` and `tail`. If adding a margin to
the tail, or subtracting it, rounds to the same double, then libm returns this double. Otherwise libm is called.
"""

from __future__ import annotations

import math
import os
import random
import struct
from array import array
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Union

from zoomgrad.engines.graph.expr import Leaf, where
from zoomgrad.engines.machine.encode import RAX, RDI, RSI, RSP, Assembler, Mem, Vec

if TYPE_CHECKING:
    from zoomgrad.engines.machine.expression import Evaluator

EXPONENTS = (2.0, 1.0, -1.0, -0.5, -2.0, -1.5)
MARGIN = 0.0152 * 2.0**-52
OF_VECTORS = (2.0, 0.5)
"""The exponents of powers that updates compute in vectors."""
_LEAST, _MOST = 2.0**-64, 2.0**64
_LOW, _HIGH, _SIZE = map(Leaf, "012")


class Pair(NamedTuple):
    """A sum of two doubles."""

    head: Vec
    tail: Vec


class Powers:
    """Writes powers of one double in registers."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.code: Assembler = evaluator.code

    def write(self, x: Vec, exponent: float, to: Vec, otherwise: Callable[[], None]) -> None:
        """`to = x ** exponent`. otherwise: computes it by calling libm."""
        code, registers = self.code, self.evaluator.registers
        if exponent == 1.0:
            self.evaluator.load(to, x)
            return
        slow, end = code.new_label(), code.new_label()
        size = registers.vector(1)
        self.evaluator.load(size, x)
        if exponent == 2.0:
            magnitude = self.evaluator.code.constant(struct.pack("<qq", *[2**63 - 1] * 2))
            code.vector("vandpd", size._replace(size=16), size._replace(size=16), magnitude)
        code.vector("vucomisd", size, None, self._number(_LEAST))
        code.jump(slow, "b")
        code.vector("vucomisd", size, None, self._number(_MOST))
        code.jump(slow, "a")
        registers.release(size)
        result = self._pair(x, exponent)
        low, high = (self._copy(result.tail) for _ in range(2))
        self._fused("vfnmadd231sd", low, result.head, self._number(MARGIN))
        self._fused("vfmadd231sd", high, result.head, self._number(MARGIN))
        code.vector("vaddsd", low, result.head, low)
        code.vector("vaddsd", high, result.head, high)
        self.evaluator.load(to, low)
        code.vector("vucomisd", low, None, high)
        code.jump(end, "e")
        registers.release(*result, low, high)
        code.label(slow)
        otherwise()
        code.label(end)

    def write_lanes(self, x: Vec, exponent: float, to: Vec, width: int) -> None:
        """`to = x ** exponent` in each lane. exponent: one of OF_VECTORS.

        libm computes the lanes that may not be the nearest double, through the stack, which then holds `x`, `to` and
        the marks of these lanes.
        """
        code, evaluator, registers = self.code, self.evaluator, self.evaluator.registers
        tail, low, high, size = (registers.vector(width) for _ in range(4))
        if exponent == 2.0:
            code.vector("vmulpd", to, x, x)
            evaluator.clear(tail)
            code.vector("vsubpd", tail, tail, to)
            self._fused("vfmadd231pd", tail, x, x)
        else:
            code.vector("vaddpd", to, x, evaluator.constant(0.0, width))  # the power of -0.0 is 0.0
            code.vector("vsqrtpd", to, None, to)
            evaluator.load(tail, x)
            self._fused("vfnmadd231pd", tail, to, to)
            code.vector("vmulpd", tail, tail, evaluator.constant(0.5, width))
            code.vector("vdivpd", tail, tail, to)
        for register, name in ((low, "vfnmadd231pd"), (high, "vfmadd231pd")):
            evaluator.load(register, tail)
            self._fused(name, register, to, evaluator.constant(MARGIN, width))
            code.vector("vaddpd", register, register, to)
        code.vector("vandpd", size, x, code.constant(struct.pack("<q", 2**63 - 1) * width))
        # y * log(x) has the same bound for a root as for a square if the exponents are larger.
        least, most = (_LEAST, _MOST) if exponent == 2.0 else (_LEAST**2, _MOST**2)
        marks = (_LOW < _HIGH) + (most < _SIZE) + where(least > _SIZE, _SIZE > 0.0, 0.0)
        unsure = evaluator.in_register(evaluator.evaluate(marks, [low, high, size], width), width)
        registers.release(tail, low, high, size)
        mask, end = evaluator.compared(_LOW > 0.0, True, [unsure.register], width), code.new_label()
        if isinstance(mask, int):
            code.mask_to(RAX, mask)
        else:
            code.signs_to(RAX, mask)
            registers.release(mask)
        code.integer("cmp", RAX, 0)
        code.jump(end, "e")
        self._mend(x, exponent, to, unsure.register, width)
        evaluator.release(unsure)
        code.label(end)

    def _mend(self, x: Vec, exponent: float, to: Vec, unsure: Vec, width: int) -> None:
        """Call libm for the lanes of `to` that are unsure."""
        code, evaluator, registers = self.code, self.evaluator, self.evaluator.registers
        places = [Mem(RSP, 64 * number) for number in range(3)]
        code.integer("sub", RSP, 192)
        for place, register in zip(places, (x, to, unsure)):
            evaluator.store(place, register)
        lane, one = registers.integer(), registers.vector(1)
        base, result, mark = (place._replace(index=lane, scale=8) for place in places)
        with code.counted_up(lane, width):
            skip = code.new_label()
            code.integer("cmp", mark, 0)
            code.jump(skip, "e")
            evaluator.load(one, base)
            evaluator.call("pow", [one, self._number(exponent)], one)
            evaluator.store(result, one)
            code.label(skip)
        registers.give_back(lane)
        registers.release(one)
        evaluator.load(to, places[1])
        code.integer("add", RSP, 192)

    def _pair(self, x: Vec, exponent: float) -> Pair:
        if exponent == 2.0:
            return self._square(x)
        if exponent == -1.0:
            return self._inverse(x)
        root = self._inverse_root(x)
        if exponent == -0.5:
            return root
        inverse = self._inverse(x)
        return self._product(inverse, inverse if exponent == -2.0 else root)

    def _square(self, x: Vec) -> Pair:
        head, tail = self._new(), self._new()
        self.code.vector("vmulsd", head, x, x)
        self.evaluator.clear(tail)
        self.code.vector("vsubsd", tail, tail, head)
        self._fused("vfmadd231sd", tail, x, x)
        return Pair(head, tail)

    def _inverse(self, x: Vec) -> Pair:
        """1 / x"""
        head, tail = self._load(1.0), self._load(1.0)
        self.code.vector("vdivsd", head, head, x)
        self._fused("vfnmadd231sd", tail, x, head)
        self.code.vector("vmulsd", tail, tail, head)
        return Pair(head, tail)

    def _inverse_root(self, x: Vec) -> Pair:
        """1 / sqrt(x)"""
        root, head, excess, lack = self._new(), self._load(1.0), self._new(), self._load(1.0)
        self.code.vector("vsqrtsd", root, x, x)
        self.code.vector("vdivsd", head, head, root)
        self.evaluator.load(excess, x)
        self._fused("vfnmadd231sd", excess, root, root)
        self._fused("vfnmadd231sd", lack, root, head)
        # tail = head * (lack - 0.5 * excess * head * head), in the order of the C
        self.code.vector("vmulsd", excess, excess, self._number(-0.5))
        self.code.vector("vmulsd", excess, excess, head)
        self._fused("vfmadd231sd", lack, excess, head)
        self.code.vector("vmulsd", lack, lack, head)
        self.evaluator.registers.release(root, excess)
        return Pair(head, lack)

    def _product(self, a: Pair, b: Pair) -> Pair:
        head, tail, rest = self._new(), self._new(), self._new()
        self.code.vector("vmulsd", head, a.head, b.head)
        self.code.vector("vmulsd", rest, a.tail, b.head)
        self._fused("vfmadd231sd", rest, a.head, b.tail)
        self.evaluator.clear(tail)
        self.code.vector("vsubsd", tail, tail, head)
        self._fused("vfmadd231sd", tail, a.head, b.head)
        self.code.vector("vaddsd", tail, tail, rest)
        self.evaluator.registers.release(*dict.fromkeys((*a, *b)), rest)  # a square has one pair
        return Pair(head, tail)

    def _new(self) -> Vec:
        return self.evaluator.registers.vector(1)

    def _load(self, number: float) -> Vec:
        register = self._new()
        self.evaluator.load(register, self._number(number))
        return register

    def _copy(self, source: Vec) -> Vec:
        register = self._new()
        self.evaluator.load(register, source)
        return register

    def _number(self, number: float) -> Mem:
        return self.evaluator.constant(number, 1)

    def _fused(self, name: str, to: Vec, first: Vec, second: Union[Vec, Mem]) -> None:
        self.code.vector(name, to, first, second)


@cache
def are_those_of_libm() -> bool:
    """Whether libm is glibc 2.28 or newer and agrees on 256 random numbers for each exponent."""
    from zoomgrad.engines.machine.expression import Evaluator
    from zoomgrad.engines.machine.memory import Memory, caller
    from zoomgrad.engines.machine.registers import Registers
    from zoomgrad.engines.machine.target import Target

    try:
        name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
        if name != "glibc" or tuple(map(int, version.split(".")[:2])) < (2, 28):
            return False
    except (ValueError, OSError, AttributeError):
        return False
    code, numbers = Assembler(), array("d", (random.Random(1).lognormvariate(0.0, 2.0) for _ in range(256)))
    results = array("d", bytes(8 * len(EXPONENTS)))
    registers = Registers(Target(4), code)
    evaluator = Evaluator(code, Target(4), registers)
    for at, exponent in enumerate(EXPONENTS):
        x, to = registers.vector(1), registers.vector(1)
        evaluator.load(x, Mem(RDI))
        Powers(evaluator).write(x, exponent, to, lambda to=to: evaluator.load(to, evaluator.constant(math.nan, 1)))  # type: ignore[misc]
        evaluator.store(Mem(RSI, 8 * at), to)
        registers.release(x, to)
    code.plain("ret")
    memory = Memory(code.finish()[0])
    call = caller(memory.start)
    for at in range(len(numbers)):
        call(memoryview(numbers)[at:], results)
        for exponent, result in zip(EXPONENTS, results):
            if result == result and result != math.pow(numbers[at], exponent):
                return False
    return True
