"""What a function and the objects among its arguments hold, and whether that has changed since its trace.

A function's names lead to its global names, variables of enclosing functions and defaults, and from there to
containers, attributes of objects and classes, and other functions of the program. Containers are copied, and `==`
compares them with the copies, which takes objects by identity first. Not followed are attributes of Values, modules,
and what lies behind a library's object: changes there are noticed when the function runs beside its program
(`check.py`).
"""

from __future__ import annotations

import contextlib
import dis
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Callable

from zoomgrad.trace import is_library

_CONTAINERS = (list, dict, set, deque, bytearray)
MOST = 100_000
"""Objects and entries to follow, and bytes of an array to compare."""


class Held:
    """What some objects hold now."""

    def __init__(self, value: Any, roots: Iterable[Any]) -> None:
        self._value = value
        self._containers: list[Any] = []
        self._copies: list[Any] = []
        self._readers: list[Callable[[], Any]] = []
        """Functions that read what is in no container."""
        self._read: list[Any] = []
        """What they have read."""
        self._seen: dict[int, Any] = {}  # keeps the objects alive, so that no id is reused
        waiting = [*roots]
        while waiting and len(self._seen) + len(waiting) <= MOST:
            each = waiting.pop()
            if id(each) not in self._seen and not isinstance(each, (value, str, bytes, int, float)):
                self._seen[id(each)] = each
                with contextlib.suppress(Exception):  # an object that answers every question in its own way
                    waiting.extend(self._parts_of(each))

    def has_changed(self) -> bool:
        """Whether any of it differs from what it was."""
        try:
            return self._containers != self._copies or [read() for read in self._readers] != self._read
        except Exception:  # the comparisons are the program's own
            return True

    def _parts_of(self, each: Any) -> Iterable[Any]:
        """What an object holds. Notes how to compare it."""
        if isinstance(each, tuple):
            return each
        if isinstance(each, _CONTAINERS):
            return self._copied(each, next(kind for kind in _CONTAINERS if isinstance(each, kind)))
        if isinstance(each, types.MethodType):
            return each.__func__, each.__self__
        if hasattr(each, "__wrapped__"):
            return (each.__wrapped__,)
        if hasattr(each, "tobytes"):
            return self._reading(each.tobytes) if memoryview(each).nbytes <= MOST else ()
        if isinstance(each, types.FunctionType):
            of_body = () if is_library(each.__module__) else self._reading(_reader(each))
            return (*of_body, each.__defaults__, each.__kwdefaults__)
        kind = each if isinstance(each, type) else type(each)
        if isinstance(each, types.ModuleType) or is_library(kind.__module__) or issubclass(kind, self._value):
            return ()
        slots = [name for name in dir(kind) if isinstance(getattr(kind, name), types.MemberDescriptorType)]
        held = (
            self._reading(lambda: [getattr(each, name, None) for name in slots]) if slots and each is not kind else []
        )
        return [kind, *held, *(self._copied(each.__dict__, dict) if hasattr(each, "__dict__") else ())]

    def _copied(self, container: Any, kind: Any) -> Iterable[Any]:
        copy = kind(container)
        self._copies.append(copy)
        self._containers.append(container)
        return copy.values() if kind is dict else copy  # type: ignore[no-any-return]

    def _reading(self, read: Callable[[], Any]) -> Iterable[Any]:
        held = read()
        if held:
            self._readers.append(read)
            self._read.append(held)
        return held  # type: ignore[no-any-return]


def _reader(function: types.FunctionType) -> Callable[[], Any]:
    """A function that reads the values of a function's global names and of the variables around it."""
    held, cells = function.__globals__, function.__closure__ or ()
    names = sorted({*_names_in(function.__code__)} & held.keys())
    return lambda: [*map(held.get, names), *(cell.cell_contents for cell in cells)]


def _names_in(code: types.CodeType) -> Iterator[str]:
    """The global names that a function's code and the functions inside it read."""
    yield from (each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names_in(inner)
