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
from typing import TYPE_CHECKING

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.machine.encode import RDI, RSI, Assembler, Mem, Vec

if TYPE_CHECKING:
    from zoomgrad.engines.machine.expression import Evaluator, Operand

EXPONENTS = (2.0, -1.0, -2.0)
MARGIN = 0.0152 * 2.0**-52
_LEAST, _MOST = 2.0**-64, 2.0**64


class Powers:
    """Writes powers of one double in registers."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.code: Assembler = evaluator.code

    def write(self, x: Vec, exponent: float, to: Vec, otherwise: Callable[[], None]) -> None:
        """`to = x ** exponent`. otherwise: computes it by calling libm."""
        code, registers = self.code, self.evaluator.registers
        slow, end = code.new_label(), code.new_label()
        size = self._copy(x)
        if exponent == 2.0:
            magnitude = self.evaluator.code.constant(struct.pack("<qq", *[2**63 - 1] * 2))
            code.vector("vandpd", size._replace(size=16), size._replace(size=16), magnitude)
        code.vector("vucomisd", size, None, self._number(_LEAST))
        code.jump(slow, "b")
        code.vector("vucomisd", size, None, self._number(_MOST))
        code.jump(slow, "a")
        registers.release(size)
        head, tail = self._pair(x, exponent)
        low, high = self._copy(tail), self._copy(tail)
        code.vector("vfnmadd231sd", low, head, self._number(MARGIN))
        code.vector("vfmadd231sd", high, head, self._number(MARGIN))
        code.vector("vaddsd", low, head, low)
        code.vector("vaddsd", high, head, high)
        self.evaluator.load(to, low)
        code.vector("vucomisd", low, None, high)
        code.jump(end, "e")
        registers.release(head, tail, low, high)
        code.label(slow)
        otherwise()
        code.label(end)

    def _pair(self, x: Vec, exponent: float) -> tuple[Vec, Vec]:
        """The head and the tail."""
        if exponent == 2.0:
            return self._square(x)
        code, one = self.code, self._number(1.0)
        head, tail = self._copy(one), self._copy(one)
        code.vector("vdivsd", head, head, x)
        code.vector("vfnmadd231sd", tail, x, head)
        code.vector("vmulsd", tail, tail, head)
        if exponent == -1.0:
            return head, tail
        square, rest = self._square(head)
        product = self._new()
        code.vector("vmulsd", product, tail, head)
        code.vector("vfmadd231sd", product, head, tail)
        code.vector("vaddsd", rest, rest, product)
        self.evaluator.registers.release(head, tail, product)
        return square, rest

    def _square(self, x: Vec) -> tuple[Vec, Vec]:
        head, tail = self._new(), self._new()
        self.code.vector("vmulsd", head, x, x)
        self.evaluator.clear(tail)
        self.code.vector("vsubsd", tail, tail, head)
        self.code.vector("vfmadd231sd", tail, x, x)
        return head, tail

    def _new(self) -> Vec:
        return self.evaluator.registers.vector(1)

    def _copy(self, source: Operand) -> Vec:
        register = self._new()
        self.evaluator.load(register, source)
        return register

    def _number(self, number: float) -> Mem:
        return self.evaluator.constant(number, 1)


@cache
def are_those_of_libm() -> bool:
    """Whether libm is glibc 2.28 or newer and agrees on 256 random numbers for each exponent."""
    from zoomgrad.engines.machine.expression import Evaluator
    from zoomgrad.engines.machine.memory import Memory
    from zoomgrad.engines.machine.registers import Registers
    from zoomgrad.engines.machine.target import Target

    try:
        name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
        if name != "glibc" or tuple(map(int, version.split(".")[:2])) < (2, 28):
            return False
    except (ValueError, OSError, AttributeError):
        return False
    code, number, results = Assembler(), array("d", [0.0]), array("d", bytes(8 * len(EXPONENTS)))
    registers = Registers(Target(4), code)
    evaluator = Evaluator(code, Target(4), registers)
    for at, exponent in enumerate(EXPONENTS):
        x, to = registers.vector(1), registers.vector(1)
        evaluator.load(x, Mem(RDI))
        Powers(evaluator).write(x, exponent, to, lambda to=to: evaluator.load(to, evaluator.constant(math.nan, 1)))  # type: ignore[misc]
        evaluator.store(Mem(RSI, 8 * at), to)
        registers.release(x, to)
    code.plain("ret")
    try:
        code.finish()
        call = Memory(code).bound(number, results)
    except (Unavailable, OSError):  # another processor, or no executable pages
        return False
    rng = random.Random(1)
    for _ in range(256):
        number[0] = rng.lognormvariate(0.0, 2.0)
        call()
        for exponent, result in zip(EXPONENTS, results):
            if result == result and result != math.pow(number[0], exponent):
                return False
    return True
