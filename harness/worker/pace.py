"""How fast the machine is just now: the time of a fixed piece of work, taken around every timed value.

A cloud machine has faster and slower seconds, and two processes hardly ever meet the same ones. What a value took,
divided by what the same work took just before and after it, does not depend on which it met. (Running baseline between
the values would do as well, at the price of a second training in every process: "duet benchmarking", Bulej et al.,
ICPE 2020.)
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from time import perf_counter

HAS_JIT = sys.implementation.name == "pypy"

ITERATIONS = 4_600_000 if HAS_JIT else 48_000
"""About ten milliseconds: short beside a value, long beside a clock's tick. The same work on every machine."""

_RING = [1.0] * 4096


def pace() -> float:
    """Seconds that the work takes now; a JIT has compiled it after one call.

    A neighbour on the same core takes its ports and its cache: work that waits for one multiplication after another
    hardly feels it, hence loads and stores, of numbers that stay at 1. It makes nothing that a garbage collector looks
    at, which would pace the engine's heap.
    """
    ring = _RING
    start = perf_counter()
    for i in range(ITERATIONS):
        ring[i * 7 & 4095] = ring[i * 13 & 4095] * 0.5 + ring[i & 4095] * 0.499 + 0.001
    return perf_counter() - start


def around(paces: Sequence[float]) -> list[float]:
    """Of n values the pace around each, from the n + 1 paces before, between and after them."""
    return [(before + after) / 2 for before, after in zip(paces, paces[1:])]
