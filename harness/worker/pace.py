"""The machine's current pace: the time of a fixed piece of work, taken before and after every timed value.

The speed of a cloud machine changes from second to second, and two processes rarely run at the same speed. Dividing a
value's time by the time of the fixed work around it cancels the change. ("Duet benchmarking", Bulej et al., ICPE 2020,
runs the baseline between the values instead, which costs a second training in every process.)
"""

from __future__ import annotations

import sys
from time import perf_counter

HAS_JIT = sys.implementation.name == "pypy"

ITERATIONS = 4_600_000 if HAS_JIT else 48_000
"""About ten milliseconds: short compared with a value, long compared with a clock tick. The same on every machine."""

_RING = [1.0] * 4096


def pace() -> float:
    """Seconds that the work takes now. A JIT compiles it during the first call.

    Another process on the same core competes for its execution ports and its cache. That hardly slows a chain of
    dependent multiplications, so the work loads and stores numbers, whose values stay at 1. It creates no object that
    the garbage collector tracks, because a collection's time would depend on the engine's heap.
    """
    ring = _RING
    start = perf_counter()
    for i in range(ITERATIONS):
        ring[i * 7 & 4095] = ring[i * 13 & 4095] * 0.5 + ring[i & 4095] * 0.499 + 0.001
    return perf_counter() - start
