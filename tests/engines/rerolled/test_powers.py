"""Powers without libm, with its bits."""

from __future__ import annotations

import math
import os
import random
from array import array

import pytest

from tests.engines.compiled.compiling import tape_of, usable
from tests.engines.fused import same
from tests.engines.graphs import classifier
from zoomgrad.engines.columns import Column
from zoomgrad.engines.compiled.emit import text as text_of
from zoomgrad.engines.compiled.lower import lower
from zoomgrad.engines.machine.libm.powers import powers_match_libm

pytestmark = pytest.mark.host

EXPONENTS = (1.0, -1.0, -2.0, *map(float, range(2, 9)))
SPECIAL = (0.0, 5e-324, 2.0**-1022, 1e-300, 2.0**-65, 2.0**-64, 2.0**64, 2.0**65, 2.0**63.9, 1.0, 4.0, 1e300, math.inf)
LANES, ROWS = 32, 1 << 11
ENGINES = ("rerolled-gcc", "rerolled-clang", "rerolled-gcc+generic", "rerolled-clang+generic", "rerolled-machine")


def numbers():
    """Special numbers with both signs, then random ones."""
    rng = random.Random(1)
    drawn = [sign * number for number in SPECIAL for sign in (1.0, -1.0)] + [math.nan]
    while len(drawn) < LANES * ROWS:
        sign, exponent = rng.choice([1, 1, 1, -1]), rng.choice([rng.randrange(-12, 9), rng.randrange(-1060, 1020)])
        drawn.append(math.ldexp(sign * (1 + rng.random()), exponent))
    return array("d", drawn)


def power(x, y):
    """What Python computes with libm, in C's conventions: infinite instead of an error."""
    try:
        return math.pow(x, y)
    except (OverflowError, ValueError):
        is_power_of_negative = x < 0.0 and not y.is_integer()
        return math.nan if is_power_of_negative else math.copysign(math.inf, x if y % 2 == 1.0 else 1.0)


@pytest.mark.parametrize("name", ENGINES)
def test_the_bits_match_libm(name):
    """Each power is a loop over vectors."""
    engine = usable(name)
    if not powers_match_libm():
        pytest.skip("another libm")
    xs = [engine.Value(1.0) for _ in range(LANES)]
    outputs = [x**y for y in EXPONENTS for x in xs]
    program = engine.compile(sum(outputs), inputs=xs, parameters=[], outputs=outputs)
    cells = numbers()
    for row, found in enumerate(program.predict(Column(cells, LANES))):
        wanted = [power(x, y) for y in EXPONENTS for x in cells[row * LANES : (row + 1) * LANES]]
        assert all(map(same, found, wanted)), [each for each in zip(found, wanted) if not same(*each)][:5]


@pytest.mark.parametrize("version", ["glibc 2.27", "musl 1.2"])
def test_another_libm_computes_all_powers(monkeypatch, version):
    options, tape = usable("rerolled-gcc").options, tape_of(*classifier())
    with monkeypatch.context() as patch:
        patch.setattr(os, "confstr", lambda _: version)
        powers_match_libm.cache_clear()
        elsewhere = text_of(lower(tape, options), options)
    powers_match_libm.cache_clear()
    assert "rounded_pow" not in elsewhere
    assert ("rounded_pow" in text_of(lower(tape, options), options)) == powers_match_libm()
