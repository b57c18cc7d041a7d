"""Powers without libm, with its bits."""

from __future__ import annotations

import contextlib
import math
import os
import random
from array import array
from functools import cache

import pytest

from tests.engines.compiled.compiling import tape_of, usable
from tests.engines.fused import same
from tests.engines.graphs import classifier
from zoomgrad.engines.compiled.emit import text as text_of
from zoomgrad.engines.compiled.lower import lower
from zoomgrad.engines.kernel import building, toolchains
from zoomgrad.engines.kernel.c_text import libm, unit
from zoomgrad.engines.kernel.c_tree import Declarations, Define, Include
from zoomgrad.engines.machine.powers import are_those_of_libm

pytestmark = pytest.mark.host

EXPONENTS = {
    "square": 2.0,
    "itself": 1.0,
    "reciprocal": -1.0,
    "reciprocal_root": -0.5,
    "reciprocal_square": -2.0,
    "reciprocal_cubed_root": -1.5,
}
_OF_EACH = """
void NAME(const double *x, double *y, long long n)
{
    for (long long i = 0; i < n; i++)
        y[i] = pow(x[i], EXPONENT);
}"""


def source():
    """C that applies each power to the numbers of an array."""
    functions = [_OF_EACH.replace("NAME", name).replace("EXPONENT", str(y)) for name, y in EXPONENTS.items()]
    lines = [line for text in functions for line in text.split("\n")]
    return unit(
        [
            Define("LANES", 4),
            libm([("pow", 2)]),
            Include("rerolled/emit/vectors.h"),
            Include("rerolled/emit/powers.h"),
            Declarations(lines),
        ]
    )


@cache
def interface():
    """cffi's view of it."""
    import cffi

    parsed = cffi.FFI()
    for name in EXPONENTS:
        parsed.cdef(f"void {name}(const double *x, double *y, long long n);")
    return parsed


@contextlib.contextmanager
def library(text, compiler, flags):
    """The compiled C."""
    with building.build(toolchains.find(compiler), [text], (*toolchains.STRICT, "-O2", *flags)) as built:
        yield interface().dlopen(str(built.path))


COUNT = 1 << 16
SPECIAL = (0.0, 5e-324, 2.0**-1022, 1e-300, 2.0**-65, 2.0**-64, 2.0**64, 2.0**65, 2.0**63.9, 1.0, 4.0, 1e300, math.inf)


def numbers():
    """Special numbers with both signs, then random ones."""
    rng = random.Random(1)
    found = [sign * number for number in SPECIAL for sign in (1.0, -1.0)] + [math.nan]
    while len(found) < COUNT:
        sign, exponent = rng.choice([1, 1, 1, -1]), rng.choice([rng.randrange(-12, 9), rng.randrange(-1060, 1020)])
        found.append(math.ldexp(sign * (1 + rng.random()), exponent))
    return array("d", found)


def computed(lib, name, x):
    found = array("d", bytes(8 * len(x)))
    getattr(lib, name)(*(interface().from_buffer("double[]", buffer) for buffer in (x, found)), len(x))
    return found


def expected(x, y):
    """What Python computes with libm, in C's conventions: infinite instead of an error."""
    try:
        return math.pow(x, y)
    except (OverflowError, ValueError):
        is_power_of_negative = x < 0.0 and not y.is_integer()
        return math.nan if is_power_of_negative else math.copysign(math.inf, x if y == -1.0 else 1.0)


def differing(lib, name):
    """How many results differ from those of Python."""
    x = numbers()
    pairs = zip(computed(lib, name, x), (expected(each, EXPONENTS[name]) for each in x))
    return sum(not same(a, b) for a, b in pairs)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("flags", [toolchains.NATIVE, ()], ids=["native", "generic"])
def test_the_bits_are_those_of_libm(compiler, flags):
    if not toolchains.has(compiler) or not are_those_of_libm():
        pytest.skip(f"no {compiler}, or another libm")
    with library(source(), compiler, flags) as lib:
        for name in EXPONENTS:
            assert not differing(lib, name), name


@pytest.mark.parametrize("version", ["glibc 2.27", "musl 1.2"])
def test_another_libm_computes_all_powers(monkeypatch, version):
    options, tape = usable("rerolled-gcc").options, tape_of(*classifier())
    with monkeypatch.context() as patch:
        patch.setattr(os, "confstr", lambda _: version)
        are_those_of_libm.cache_clear()
        elsewhere = text_of(lower(tape, options), options)
    are_those_of_libm.cache_clear()
    assert "rounded_pow" not in elsewhere
    assert ("rounded_pow" in text_of(lower(tape, options), options)) == are_those_of_libm()
