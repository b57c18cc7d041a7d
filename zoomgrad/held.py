"""What the objects among a function's arguments hold, and whether that has changed since its trace.

An object leads to its attributes, and a container to its entries. Each container and each `__dict__` is copied, and
`==` compares them with the copies, which takes objects by identity first. Values and objects of a library are not
followed. Changes in them, in global names and in variables around the function are left to the check (`check.py`).
"""

from __future__ import annotations

import contextlib
import copy
from collections import deque
from collections.abc import Iterable
from typing import Any

from zoomgrad.trace import is_library

_CONTAINERS = (list, tuple, dict, set, deque)
MOST = 100_000
"""The most objects and containers to follow. The check covers the rest."""


class Held:
    """What some objects hold now."""

    def __init__(self, value: Any, objects: Iterable[Any]) -> None:
        self._containers, self._copies = list[Any](), list[Any]()
        self._seen: dict[int, Any] = {}  # keeps the objects alive, so that no id is reused
        waiting = [*objects]
        while waiting and len(self._seen) < MOST:
            each = waiting.pop()
            with contextlib.suppress(Exception):  # an object that answers every question in its own way
                is_container = isinstance(each, _CONTAINERS)
                is_object = not isinstance(each, (value, type)) and not is_library(type(each).__module__)
                if id(each) not in self._seen and (is_container or is_object):
                    self._seen[id(each)] = each
                    if is_container:
                        waiting.extend(self._copied(each))
                    if is_object:
                        waiting.extend(self._copied(vars(each)))

    def _copied(self, container: Any) -> Iterable[Any]:
        self._copies.append(copy.copy(container))
        self._containers.append(container)
        return container.values() if isinstance(container, dict) else container

    def has_changed(self) -> bool:
        """Whether any of it differs from what it was."""
        try:
            return self._containers != self._copies
        except Exception:  # the comparisons are the program's own
            return True
