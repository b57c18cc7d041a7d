"""Compare the powers of `powers.h` with libm's: `python -m tests.engines.rerolled.powers [COUNT]`.

COUNT is by default 10**8 numbers for each exponent. Half of them have the exponents of softmaxes and RMS norms, the
others those of the whole range of the method and a little beyond it; digits are random.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from engines.kernel import building, toolchains
from engines.kernel.c_text import libm, unit
from engines.kernel.c_tree import Declarations, Define, Include

EXPONENTS = {
    "square": 2.0,
    "itself": 1.0,
    "reciprocal": -1.0,
    "reciprocal_root": -0.5,
    "reciprocal_square": -2.0,
    "reciprocal_cubed_root": -1.5,
}
PART = 1 << 20

_IS_KNOWN = """
long long is_known(void)
{
#ifdef MARGIN
    return libm_is_known;
#else
    return 0;
#endif
}"""
_OF_EACH = """
void NAME(const double *x, double *y, long long n)
{
    for (long long i = 0; i < n; i++)
        y[i] = pow(x[i], EXPONENT);
}"""


def source() -> str:
    """C that applies each power to the numbers of an array."""
    functions = [_OF_EACH.replace("NAME", name).replace("EXPONENT", str(y)) for name, y in EXPONENTS.items()]
    lines = [line for text in (*functions, _IS_KNOWN) for line in text.split("\n")]
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
def interface() -> Any:
    """cffi's view of it."""
    import cffi

    parsed = cffi.FFI()
    parsed.cdef("long long is_known(void);")
    for name in EXPONENTS:
        parsed.cdef(f"void {name}(const double *x, double *y, long long n);")
    return parsed


@contextlib.contextmanager
def library(text: str, compiler: str, flags: Sequence[str]) -> Iterator[Any]:
    """The compiled C."""
    with building.build(toolchains.find(compiler), [text], (*toolchains.STRICT, "-O2", *flags)) as built:
        yield interface().dlopen(str(built.path))


def main() -> None:
    """Print how many were compared, and how many differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=10**8)
    count = parser.parse_args().count
    rng, ffi = np.random.default_rng(1), interface()
    # Without fused multiply-add, every call is libm's.
    with library(source(), "clang", toolchains.NATIVE) as ours, library(source(), "clang", ()) as theirs:
        print(f"libm is known: {bool(ours.is_known())}")
        for name in EXPONENTS:
            compared = differ = 0
            while compared < count:
                exponents = np.where(rng.random(PART) < 0.5, rng.integers(-6, 6, PART), rng.integers(-66, 66, PART))
                signs = rng.choice([-1.0, 1.0], PART) if name in ("square", "itself") else 1.0
                x, found, wanted = np.ldexp(signs + signs * rng.random(PART), exponents), np.zeros(PART), np.zeros(PART)
                pointers = [ffi.from_buffer("double[]", array) for array in (x, found, wanted)]
                getattr(ours, name)(pointers[0], pointers[1], PART)
                getattr(theirs, name)(pointers[0], pointers[2], PART)
                differ += int((found.view(np.int64) != wanted.view(np.int64)).sum())
                compared += PART
            print(f"{name}: {compared:,} compared, {differ:,} differ")


if __name__ == "__main__":
    main()
