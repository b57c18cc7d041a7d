"""Functions of libm in vectors, for engines that do not promise its bits: exp, tanh and some powers.

exp(x) = 2**n * exp(r), where n is the whole number nearest to x / log(2), so |r| is at most 0.35, and exp(r) is
1 + r * q(r) with a polynomial q. tanh(x) = e / (e + 2), where e = exp(2 * x) - 1 is 2**n * r * q(r) + (2**n - 1). If x
is small, n is 0, so nearly equal numbers are never subtracted. `kernel/fast.h` computes the same in C.
"""

from __future__ import annotations

import math
import struct
from functools import reduce
from typing import TYPE_CHECKING

from zoomgrad.engines.graph.expr import Apply, Literal
from zoomgrad.engines.machine.encode import Vec

if TYPE_CHECKING:
    from zoomgrad.engines.machine.expression import Evaluator

TERMS = [1 / math.factorial(k) for k in range(12, 0, -1)]
SHIFT = 1.5 * 2**52 + 1023
"""Adding SHIFT rounds a number to an integer. The sum's last bits are this integer plus 1023, the exponent of 1.0."""
MOST = 8
"""The largest exponent of a power."""


def is_fast(call: Apply) -> bool:
    """Whether this file computes a call: of exp, of tanh, or of a power whose exponent is a small multiple of 1/2."""
    power = call.operands[-1]
    if call.primitive == "pow" and isinstance(power, Literal):
        return 0 < abs(power.number) <= MOST and (2 * power.number).is_integer()
    return call.primitive in ("exp", "tanh")


def write_fast(evaluator: Evaluator, call: Apply, x: Vec, width: int) -> Vec:
    """Compute a call for each number of a vector. NaN stays NaN."""
    exponent, code, binary = call.operands[-1], evaluator.code, evaluator.binary
    if call.primitive == "pow" and isinstance(exponent, Literal):
        return _power(evaluator, x, exponent.number, width)
    kind, least, most = "pd" if width > 1 else "sd", -709.0, 710.0  # exp is 0 below -708.7, and infinite above 709.4
    if call.primitive == "tanh":
        evaluator.registers.share(x)
        x, least, most = binary("add", x, x, width), -40.0, 40.0

    def constant(number: float) -> Vec:
        return evaluator.in_own_register(evaluator.constant(number, width), width)

    def combine(name: str, to: Vec, first: Vec, second: float) -> None:
        code.vector(f"v{name}{kind}", to, first, evaluator.constant(second, width))

    # vmaxpd and vminpd return their second operand if it is NaN.
    rest = binary("min", constant(most), binary("max", constant(least), x, width), width)
    power, whole, total = constant(SHIFT), evaluator.registers.vector(width), constant(TERMS[0])
    combine("fmadd231", power, rest, 1 / math.log(2))  # n + 1023 in the last bits
    combine("sub", whole, power, SHIFT)
    combine("fnmadd231", rest, whole, math.log(2))
    for term in TERMS[1:]:
        combine("fmadd213", total, rest, term)
    code.vector("vpsllvq", power, power, code.constant(struct.pack("<q", 52) * max(2, width)))
    if call.primitive == "exp":
        combine("fmadd213", total, rest, 1.0)
        evaluator.release(rest, whole)
        return binary("mul", total, power, width)
    combine("sub", whole, power, 1.0)
    total = binary("mul", total, rest, width)
    code.vector(f"vfmadd213{kind}", total, power, whole)
    combine("add", power, total, 2.0)
    evaluator.release(whole)
    return binary("div", total, power, width)


def _power(evaluator: Evaluator, x: Vec, exponent: float, width: int) -> Vec:
    """The product of powers 1, 2, 4 and 8, and of the root if the exponent has a half; inverted if it is negative."""
    left, factors = int(abs(exponent)), []
    if exponent % 1:
        factors.append(evaluator.registers.vector(width))
        evaluator.code.vector(f"vsqrt{'pd' if width > 1 else 'sd'}", factors[0], None if width > 1 else x, x)
    while left:
        if left % 2:
            evaluator.registers.share(x)
            factors.append(x)
        left //= 2
        if left:
            evaluator.registers.share(x)
            x = evaluator.binary("mul", x, x, width)
    evaluator.release(x)
    result = reduce(lambda product, factor: evaluator.binary("mul", product, factor, width), factors)
    return evaluator.binary("div", evaluator.constant(1.0, width), result, width) if exponent < 0 else result
