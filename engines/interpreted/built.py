"""Engines whose Value class is compiled, and built when it is first used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, Optional

from zoomgrad.engines.api import Store, Unavailable, Workload
from zoomgrad.engines.interpreted.trainer import RebuildingTrainer
from zoomgrad.engines.value_engine import ValueEngine


def once(build: Callable[[], Any]) -> Callable[[], Any]:
    """Make a function that builds at its first call, and then always gives that class or raises that Unavailable."""
    lock = threading.Lock()
    found: list[Any] = []

    @wraps(build)
    def first() -> Any:
        with lock:
            if not found:
                try:
                    found.append(build())
                except Unavailable as reason:
                    found.append(reason)
        if isinstance(found[0], Unavailable):
            raise found[0]
        return found[0]

    return first


class BuiltEngine(ValueEngine):
    """An engine that builds a graph for every step, with a compiled class."""

    def __init__(self, name: str, build: Callable[[], Any], *, extensible: bool = True, **facts: Any) -> None:
        """build: gives the class, or raises Unavailable. extensible: whether programs may derive from the class."""
        super().__init__(name, **facts)
        self.extensible = extensible
        self._build = once(build)

    def check(self) -> None:
        """Raise Unavailable if the class can't be built or loaded here."""
        self._build()

    @cached_property
    def Value(self) -> Any:  # noqa: N802  (a class)
        return self._build()

    def prepare(self, workload: Workload, *, objects: Optional[Store] = None) -> RebuildingTrainer:
        return RebuildingTrainer(self.nn, workload)
