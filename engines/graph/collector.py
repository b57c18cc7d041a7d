"""The garbage collector, paused while a graph grows."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Pause collections in this block. A growing graph is a million objects and no garbage, and each would walk it.

    If the blocks of several threads overlap, the one that paused the collector resumes it, so it never stays off.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
