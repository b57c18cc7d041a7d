"""Functions that need not have libm's bits, in machine code and in C: vectors of numbers, and numbers at the limits."""

from __future__ import annotations

import math
import random
from array import array

import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.rerolled.rolling import WIDTHS
from zoomgrad.engines.columns import Column
from zoomgrad.engines.graph.expr import Apply, Leaf, Literal
from zoomgrad.engines.machine.encode import RDI, RSI, Assembler, Mem
from zoomgrad.engines.machine.expression import Evaluator
from zoomgrad.engines.machine.libm.fast import MOST
from zoomgrad.engines.machine.memory import Memory
from zoomgrad.engines.machine.registers import Registers

pytestmark = pytest.mark.host

X = Leaf("0")
POWERS = [sign * half / 2 for half in range(1, 2 * MOST + 1) for sign in (1, -1)]
SPECIAL = (0.0, math.inf, math.nan, 1e308, 1e-300, 5e-324, 709.3, 708.6, 750.0, 20.0, 1e-9, 1e-17, 0.3465, 0.347)


def results(call, numbers, registers, width):
    """The function of each number, computed in vectors of that width."""
    code = Assembler()
    pool = Registers(code, registers)
    evaluator, x = Evaluator(pool, fast=True), pool.vector(width)
    evaluator.load(x, Mem(RDI))
    x = evaluator.evaluate(call, [x], width)
    evaluator.store(Mem(RSI), x)
    evaluator.release(x)
    assert not pool.users
    for name in ("vzeroupper", "ret"):
        code.plain(name)
    code.finish()
    source, to = array("d", numbers), array("d", numbers)
    memory = Memory(code)
    for at in range(0, len(source), width):
        memory.bound(memoryview(source)[at : at + width], memoryview(to)[at : at + width])()
    return to


def of_libm(function, x):
    try:
        return function(x)
    except OverflowError:
        return math.inf
    except (ZeroDivisionError, ValueError):
        return math.nan


def assert_nearly(call, function, numbers, registers, error):
    numbers = [*numbers, *[1.0] * (-len(numbers) % 8)]
    expected = [of_libm(function, x) for x in numbers]
    for width in [each for each in (1, 2, 4, 8) if each <= registers]:
        assert list(results(call, numbers, registers, width)) == pytest.approx(
            expected, rel=error, abs=2e-308, nan_ok=True
        )


def drawn(seed):
    chance = random.Random(seed)
    numbers = [sign * x for x in SPECIAL for sign in (1, -1)] + [chance.uniform(-708, 709) for _ in range(2000)]
    return numbers + [chance.gauss(0, 1) * 10 ** chance.uniform(-12, 1) for _ in range(2000)]


@pytest.mark.parametrize("registers", WIDTHS)
@pytest.mark.parametrize(("name", "error"), [("exp", 3e-14), ("tanh", 1e-15)])
def test_exp_and_tanh(name, error, registers):
    """exp is 0 where libm's is below 1.6e-308, and infinite where that is above 1.27e308."""
    assert_nearly(Apply(name, (X,)), getattr(math, name), drawn(name), registers, error)


@pytest.mark.parametrize("registers", WIDTHS)
@pytest.mark.parametrize("exponent", POWERS)
def test_powers(exponent, registers):
    numbers = [random.Random(exponent).lognormvariate(0, 9) for _ in range(160)]
    signs = (1, -1) if exponent % 1 == 0 else (1,)
    numbers = [sign * x for x in numbers for sign in signs]
    call = Apply("pow", (X, Literal(exponent)))
    assert_nearly(call, lambda x: math.pow(x, exponent), numbers, registers, 2e-15)


def test_the_same_functions_in_c():
    """Each row has two numbers: exp and tanh take the first, powers take the second, which is positive."""
    engine, chance = usable("rerolled-clang-fast"), random.Random(1)
    numbers = [number for x in drawn("C") for number in (x, chance.lognormvariate(0, 9))]
    x, y = inputs = [engine.Value(1.0), engine.Value(1.0)]
    outputs = [x.exp(), x.tanh(), *(y**power for power in POWERS)]
    program = engine.compile(sum(outputs), inputs=inputs, parameters=[], outputs=outputs)
    for x, y, row in zip(numbers[::2], numbers[1::2], program.predict(Column(array("d", numbers), 2))):
        expected = [of_libm(math.exp, x), math.tanh(x), *(math.pow(y, power) for power in POWERS)]
        assert list(row) == pytest.approx(expected, rel=3e-14, abs=2e-308, nan_ok=True)
