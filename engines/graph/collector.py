"""The garbage collector, paused while a graph grows."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

_LOCK = threading.Lock()


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Pause collections in this block. A growing graph is a million objects and no garbage, which each would walk.

    If the blocks of several threads overlap, the one that paused the collector resumes it, so it never stays off.
    """
    with _LOCK:  # another thread's block may end between the two calls
        was_enabled = gc.isenabled()
        gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            with _LOCK:
                gc.enable()
