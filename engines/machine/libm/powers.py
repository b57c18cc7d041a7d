"""Powers with libm's bits, for the exponents in EXPONENTS: 24 of 25 take no call.

rerolled/emit/powers.h explains the method: a result is first the sum of two doubles, `head` and `tail`. If adding a
margin to the tail, or subtracting it, rounds to the same double, libm returns this double. Otherwise libm is called.
"""

from __future__ import annotations

import math
import os
import random
import struct
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from zoomgrad.engines.machine.encode import Vec

if TYPE_CHECKING:
    from zoomgrad.engines.machine.expression import Evaluator

EXPONENTS = (*map(float, range(2, 9)), -1.0, -2.0)
MARGIN = 0.0152 * 2.0**-52
LEAST, MOST = 2.0**-128, 2.0**128
"""Results whose magnitude is beyond these are left to libm: emit/powers.h says why."""
ALL_BUT_SIGN = struct.pack("<q", 2**63 - 1)


def write_rounded_power(evaluator: Evaluator, x: Vec, exponent: float, to: Vec, otherwise: Callable[[], None]) -> None:
    """`to = x ** exponent`. otherwise: computes it by calling libm."""
    code, registers = evaluator.code, evaluator.registers
    slow, end = code.new_label(), code.new_label()
    head, tail = _pair(evaluator, x, exponent)
    high = registers.vector(1)
    evaluator.load(to, tail)
    evaluator.load(high, tail)
    code.vector("vfnmadd231sd", to, head, evaluator.constant(MARGIN, 1))
    code.vector("vfmadd231sd", high, head, evaluator.constant(MARGIN, 1))
    code.vector("vaddsd", to, head, to)
    code.vector("vaddsd", high, head, high)
    code.vector("vandpd", head, to, code.constant(ALL_BUT_SIGN * 2))
    for limit, beyond in ((LEAST, "b"), (MOST, "a")):
        code.vector("vucomisd", head, None, evaluator.constant(limit, 1))
        code.jump(slow, beyond)
    code.vector("vucomisd", to, None, high)
    code.jump(end, "e")
    registers.release(head, tail, high)
    code.label(slow)
    otherwise()
    code.label(end)


def _pair(evaluator: Evaluator, x: Vec, exponent: float) -> tuple[Vec, Vec]:
    """The head and the tail."""
    if exponent > 0:
        head, tail = _product(evaluator, x, x)
        for _ in range(int(exponent) - 2):
            further, rest = _product(evaluator, head, x)
            evaluator.code.vector("vfmadd231sd", rest, tail, x)
            evaluator.registers.release(head, tail)
            head, tail = further, rest
        return head, tail
    code, one = evaluator.code, evaluator.constant(1.0, 1)
    head, tail = (evaluator.registers.vector(1) for _ in range(2))
    evaluator.load(tail, one)
    code.vector("vdivsd", head, tail, x)
    code.vector("vfnmadd231sd", tail, x, head)
    code.vector("vmulsd", tail, tail, head)
    if exponent == -1.0:
        return head, tail
    square, rest = _product(evaluator, head, head)
    code.vector("vaddsd", tail, tail, tail)
    code.vector("vfmadd231sd", rest, tail, head)
    evaluator.registers.release(head, tail)
    return square, rest


def _product(evaluator: Evaluator, a: Vec, b: Vec) -> tuple[Vec, Vec]:
    """The head and the tail of a * b."""
    head, tail = (evaluator.registers.vector(1) for _ in range(2))
    evaluator.code.vector("vmulsd", head, a, b)
    evaluator.clear(tail)
    evaluator.code.vector("vsubsd", tail, tail, head)
    evaluator.code.vector("vfmadd231sd", tail, a, b)
    return head, tail


@cache
def powers_match_libm() -> bool:
    """Whether libm is glibc 2.28 or newer, and agrees on 96 random numbers for each exponent."""
    try:
        name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
        if name != "glibc" or tuple(map(int, version.split(".")[:2])) < (2, 28):
            return False
    except (ValueError, OSError, AttributeError):
        return False
    rng = random.Random(1)
    return all(_powers_match(rng.lognormvariate(0.0, 2.0)) for _ in range(96))


def _powers_match(x: float) -> bool:
    """Whether libm returns the double nearest to each power of x, unless a margin could change it."""
    for exponent in EXPONENTS:
        ratio = x.as_integer_ratio() if exponent > 0 else x.as_integer_ratio()[::-1]
        over, under = (integer ** abs(int(exponent)) for integer in ratio)
        head = over / under  # the double nearest to the quotient of integers
        part, whole = head.as_integer_ratio()
        tail = (over * whole - part * under) / (under * whole)
        if head + (tail - MARGIN * head) == head + (tail + MARGIN * head) != math.pow(x, exponent):
            return False
    return True
