"""What a function and the objects among its arguments hold, and whether that has changed since its trace.

A function's names lead to its global names, variables of enclosing functions and defaults, and from there to lists,
tuples, dicts, sets, attributes of objects and classes, and other functions of the program. Containers are copied, so
`==` compares them, which takes objects by identity first. Not followed are attributes of Values, modules, and whatever
lies behind a library's object: changes there are found when the function runs beside its program
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

_CONTAINERS = (list, tuple, set, deque, bytearray, dict)
MOST = 100_000
"""Entries of containers, and bytes of an array, to compare. More are compared by identity."""


class Held:
    """What some objects hold now."""

    def __init__(self, value: Any, roots: Iterable[Any], noise: Iterable[tuple[int, str]] = ()) -> None:
        """noise: what `changes` returned for changes that led to no other graph, so that it is not compared."""
        self._value = value
        self._noise = noise
        self.reached: set[int] = set()
        """Ids of the Values that can be reached."""
        self.generators: list[Any] = []
        """Generators of random numbers that can be reached."""
        self._entries = 0
        self._open: set[int] = set()
        """Ids of the containers that are being copied."""
        self._seen: dict[int, Any] = {}  # keeps the objects alive, so that no id is reused
        self._texts: dict[tuple[int, str], str] = {}
        """Object's id and path -> the comparison of what the path leads to with what it was."""
        self._names: dict[str, Any] = {}
        self._waiting = list(roots)
        while self._waiting:
            each = self._waiting.pop()
            if id(each) not in self._seen:
                self._seen[id(each)] = each
                with contextlib.suppress(Exception):  # an object that answers every question in its own way
                    self._follow(each)
        self.is_same = self._function_of(" and ".join(self._texts.values()))
        """Whether all of it is as it was. May raise anything, because it compares objects of the program."""

    def has_changed(self) -> bool:
        """Whether any of it differs from what it was."""
        try:
            return not self.is_same()
        except Exception:
            return True

    def changes(self) -> set[tuple[int, str]]:
        """What differs: ids of objects, and paths."""
        changed = set()
        for key, text in self._texts.items():
            try:
                changed.update([] if self._function_of(text)() else [key])
            except Exception:
                changed.add(key)
        return changed

    def _function_of(self, text: str) -> Callable[[], bool]:
        return eval(f"lambda: {text or True}", self._names)  # type: ignore[no-any-return]  # noqa: S307  (our own text)

    def _compare(self, holder: Any, path: str, now: Any) -> None:
        """Compare what a path from an object leads to, such as `.__dict__`, with what it is now."""
        if (id(holder), path) in self._texts:
            return
        if (id(holder), path) not in self._noise:
            number, before = len(self._texts), self._copy(now)
            self._names[f"h{number}"], self._names[f"b{number}"] = holder, before
            is_object = before is now and not isinstance(now, (int, float, str, bytes))
            self._texts[id(holder), path] = f"h{number}{path} {'is' if is_object else '=='} b{number}"
        elif path == ".__dict__":
            for name, part in now.items():
                self._compare(holder, f".__dict__.get({name!r})", part)

    def _follow(self, each: Any) -> None:
        if type(each).__module__ == "zoomgrad.decorator":
            self._waiting.append(each.__wrapped__)
        elif isinstance(each, types.ModuleType):
            pass
        elif isinstance(each, types.MethodType):
            self._waiting += (each.__func__, each.__self__)
        elif isinstance(each, types.FunctionType):
            if not is_library(each.__module__):
                self._function(each)
        elif _is_generator(each):
            self.generators.append(each)
        elif isinstance(each, type):
            if not is_library(each.__module__) and not issubclass(each, self._value):
                self._compare(each, ".__dict__", dict(vars(each)))
        elif hasattr(each, "tobytes"):
            if memoryview(each).nbytes <= MOST:
                self._compare(each, ".tobytes()", each.tobytes())
        elif isinstance(each, types.SimpleNamespace) or not is_library(type(each).__module__):
            self._waiting.append(type(each))
            for name in [name for kind in type(each).__mro__ for name, slot in vars(kind).items() if _is_slot(slot)]:
                if hasattr(each, name):
                    self._compare(each, f".{name}", getattr(each, name))
            if isinstance(getattr(each, "__dict__", None), dict):
                self._compare(each, ".__dict__", vars(each))

    def _function(self, each: types.FunctionType) -> None:
        for path in (".__defaults__", ".__kwdefaults__"):
            if getattr(each, path[1:]):
                self._compare(each, path, getattr(each, path[1:]))
        for cell in each.__closure__ or ():
            with contextlib.suppress(ValueError):  # it has no value yet
                self._compare(cell, ".cell_contents", cell.cell_contents)
        for name in sorted({*_names_in(each.__code__)} & each.__globals__.keys()):
            self._compare(each.__globals__, f".get({name!r})", each.__globals__[name])

    def _copy(self, each: Any) -> Any:
        """A copy of a container, or the object itself, which is followed later."""
        if isinstance(each, self._value):
            self.reached.add(id(each))
        elif isinstance(each, _CONTAINERS):
            if type(each) not in _CONTAINERS:  # it may have attributes
                self._waiting.append(each)
            self._entries += len(each)
            if self._entries <= MOST and id(each) not in self._open:
                self._open.add(id(each))
                try:
                    return self._copied(each)
                finally:
                    self._open.remove(id(each))
        elif not isinstance(each, (str, bytes, int, float)) and each is not None:
            self._waiting.append(each)
        return each

    def _copied(self, each: Any) -> Any:
        if isinstance(each, dict):
            return {key: self._copy(part) for key, part in each.items()}
        kind: Any = next(kind for kind in _CONTAINERS if isinstance(each, kind))
        return kind(map(self._copy, each))


def _names_in(code: types.CodeType) -> Iterator[str]:
    """The global names that a function's code and the functions inside it read."""
    yield from (each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names_in(inner)


def _is_slot(attribute: Any) -> bool:
    return isinstance(attribute, types.MemberDescriptorType)


def _is_generator(each: Any) -> bool:
    """Whether it draws random numbers, and has a state that can be put back."""
    module = str(type(each).__module__).partition(".")[0]
    has_state = module in ("random", "numpy") and any(
        hasattr(each, name) for name in ("getstate", "get_state", "bit_generator")
    )
    return has_state and type(each).__name__ != "SystemRandom"
