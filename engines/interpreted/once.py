"""Classes that are built when they are first used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, wraps
from typing import Any


def once(build: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that builds the class when first called, and then returns that class."""
    lock, built = threading.Lock(), cache(build)

    @wraps(build)
    def first() -> Any:
        with lock:
            return built()

    return first
