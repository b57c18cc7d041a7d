"""Compare squares and roots in lanes with libm's `pow`, and quotients with `/`.

Run `python -m tests.engines.families.powers [COUNT]`. COUNT is by default 10**8 for each of the three, in lanes of each
width. The numbers have random signs and digits; for squares and roots, exponents lie within the range of the rounding
test, and a little beyond it. Half of the numbers are chosen so that the exact result lies near the middle of two
doubles, where libm's answer is least certain. All numbers whose result is a power of two or next to one are compared as
well, because the distance of doubles changes there.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from engines.families import in_c
from engines.graph.optimisers import ADAM
from engines.kernel import toolchains

PART = 1 << 20


def near_middles(rng: np.random.Generator, is_root: bool, count: int) -> np.ndarray:
    """Numbers whose square, or root, is near the middle of two doubles."""
    if is_root:  # the square of a double with one more bit, rounded
        doubled = rng.integers(1 << 53, 1 << 54, count) | 1
        return (doubled.astype(np.longdouble) ** 2).astype(float)
    # The last bits of a square depend on those of the number: try several, and keep the nearest.
    best, distance = np.zeros(count), np.full(count, np.inf)
    for _ in range(8):
        found = 1.0 + rng.random(count)
        square = found.astype(np.longdouble) ** 2
        rest = np.abs(np.abs((square - square.astype(float)).astype(float)) / np.spacing(square.astype(float)) - 0.5)
        best = np.where(rest < distance, found, best)
        distance = np.minimum(rest, distance)
    return best


def near_powers_of_two(is_root: bool) -> np.ndarray:
    """All numbers of the range whose square, or root, is about a power of two."""
    results = np.ldexp(1.0, np.arange(-130, 131))
    middles = results**2 if is_root else np.sqrt(results)
    found = [middles]
    for towards in (0.0, np.inf):
        each = middles
        for _ in range(8):
            each = np.nextafter(each, towards)
            found.append(each)
    return np.concatenate(found)


def quotients(lib: Any, rng: np.random.Generator, count: int) -> None:
    """Print how many quotients differ from the processor's, half of them by divisors of Adam."""
    ffi, compared, differ, divided = in_c.interface(), 0, 0, 0
    while compared < count:
        divisor = 1 - rng.choice([0.85, 0.99]) ** rng.integers(1, 200) if rng.random() < 0.5 else rng.random()
        # Near the middle of two doubles: the product of the divisor and such a middle.
        middles = (rng.integers(1 << 53, 1 << 54, PART // 2) | 1).astype(np.longdouble)
        x = np.concatenate([(middles * divisor).astype(float) * 2.0**-53, rng.random(PART // 2) - 0.5])
        x = np.ldexp(x, rng.integers(-120, 120, PART))
        ours = np.zeros(PART)
        pointers = [ffi.from_buffer("double[]", array) for array in (x, ours)]
        divided += lib.quotients(*pointers, PART, divisor)
        differ += int((ours.view(np.int64) != (x / divisor).view(np.int64)).sum())
        compared += PART
    print(f"quotients: {compared:,} compared, {differ:,} differ, {divided / compared:.2%} divided one by one")


def powers(lib: Any, rng: np.random.Generator, is_root: bool, count: int) -> None:
    """Print how many squares, or roots, differ from libm's, and how many the lanes left to libm."""
    ffi, compared, differ, left, half = in_c.interface(), 0, 0, 0, PART // 2
    special = near_powers_of_two(is_root)
    while compared < count:
        plain = (1.0 + rng.random(half)) * rng.choice([-1.0, 1.0], half) ** (1 - is_root)
        x = np.concatenate([plain, near_middles(rng, is_root, half)])
        exponents = rng.integers(-66, 67, PART) * (2 if is_root else 1)
        x = np.ldexp(x, exponents)
        x[: len(special)] = special
        ours, theirs = np.zeros(PART), np.zeros(PART)
        pointers = [ffi.from_buffer("double[]", array) for array in (x, ours, theirs)]
        left += lib.powers(pointers[0], pointers[1], PART, is_root, 1)
        lib.powers(pointers[0], pointers[2], PART, is_root, 0)
        differ += int((ours.view(np.int64) != theirs.view(np.int64)).sum())
        compared += PART
    what = "roots" if is_root else "squares"
    print(f"{what}: {compared:,} compared, {differ:,} differ, {left / compared:.2%} left to libm")


def main() -> None:
    """Print how many were compared and how many differ, in lanes of each width that this processor has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=10**8)
    count = parser.parse_args().count
    tool, flags = toolchains.find("clang"), (*toolchains.STRICT, "-O2", *toolchains.NATIVE)
    for width in (4, 8) if "__AVX512F__" in toolchains.macros(tool, flags) else (4,):
        lib, rng = in_c.load(tool, flags, ADAM, width), np.random.default_rng(1)
        print(f"{width} lanes; libm is known: {in_c.libm_is_known(lib)}")
        for is_root in (False, True):
            powers(lib, rng, is_root, count)
        quotients(lib, rng, count)


if __name__ == "__main__":
    main()
