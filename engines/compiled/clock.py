"""Compile time by phase."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from time import perf_counter
from typing import Optional

PHASES = ("trace", "lower", "generate", "compile", "load")


class Clock:
    """Seconds by phase, 0 for phases that an engine lacks, and the sizes of the results.

    Every moment from the start of the first phase until `stop` belongs to one phase, so the phases add up to that time.
    """

    def __init__(self) -> None:
        self.phases = dict.fromkeys(PHASES, 0.0)
        self.sizes: dict[str, float] = {}
        self._phase: Optional[str] = None
        self._since = 0.0

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Start or continue that phase, which lasts until the next one. When the block ends, `phases` includes it."""
        self._turn_to(name)
        yield
        self._turn_to(name)

    def add(self, other: Clock) -> None:
        """Add the phases and sizes of another clock, which has stopped."""
        for phase, seconds in other.phases.items():
            self.phases[phase] += seconds
        looped_rows = sum(s.get("tape_rows", 0.0) * s.get("looped_share", 0.0) for s in (self.sizes, other.sizes))
        for name, size in other.sizes.items():
            if name in ("parallel_compilers", "vector_doubles", "threads"):
                self.sizes[name] = max(self.sizes.get(name, 0), size)
            elif name != "looped_share":
                self.sizes[name] = self.sizes.get(name, 0) + size
        if "looped_share" in other.sizes:
            self.sizes["looped_share"] = looped_rows / self.sizes["tape_rows"]

    def stop(self) -> None:
        self._turn_to(None)

    def _turn_to(self, name: Optional[str]) -> None:
        """End the last phase, and start that one."""
        now = perf_counter()
        if self._phase is not None:
            self.phases[self._phase] += now - self._since
        self._phase, self._since = name, now
