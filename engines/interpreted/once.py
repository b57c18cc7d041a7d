"""Classes that are built when they are first used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from zoomgrad.engines.api import Unavailable


def once(build: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that builds the class when first called, and then returns it or raises the same Unavailable."""
    lock = threading.Lock()
    results: list[Any] = []

    @wraps(build)
    def first() -> Any:
        with lock:
            if not results:
                try:
                    results.append(build())
                except Unavailable as reason:
                    results.append(reason)
        if isinstance(results[0], Unavailable):
            raise results[0]
        return results[0]

    return first
