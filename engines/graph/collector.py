"""The garbage collector, paused by any number of threads."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator


class Collector:
    """Pauses the garbage collector while any thread compiles or traces.

    A growing graph is a million objects and no garbage, so collections would walk it again and again. All pauses count
    together. If each pause restored the state before it, overlapping pauses could leave the collector off.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pauses = 0
        self._was_enabled = False

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Pause collections until the last of these blocks ends."""
        with self._lock:
            if not self._pauses:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._pauses += 1
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1
                if self._was_enabled and not self._pauses:
                    gc.enable()


COLLECTOR = Collector()
