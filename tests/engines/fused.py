"""For tests of C that has libm's bits by fused multiply-add."""

from __future__ import annotations

import struct

import pytest

from zoomgrad.engines.kernel import toolchains

NEEDS_FUSED = pytest.mark.skipif(
    not toolchains.has("gcc") or "__FMA__" not in toolchains.macros(toolchains.find("gcc"), toolchains.NATIVE),
    reason="only with gcc, for a processor with fused multiply-add",
)

HAS_512_BITS = toolchains.has("gcc") and "__AVX512F__" in toolchains.macros(toolchains.find("gcc"), toolchains.NATIVE)
NEEDS_512_BITS = pytest.mark.skipif(
    not HAS_512_BITS, reason="only with gcc, for a processor with vectors of eight doubles"
)


def same(x, y):
    return struct.pack("d", x) == struct.pack("d", y) or (x != x and y != y)
