"""Copies of what objects hold, and the comparison with what they hold now.

Each call of a compiled function makes this comparison, so it is written twice: `unchanged` below, and the same in
`unchanged.c`, which takes a hundredth of the time. Everything is compared by identity.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Callable, Optional

from engines.api import Unavailable
from engines.kernel import object_cache
from engines.kernel.building import BuildFailed, build, loading
from engines.kernel.extension import LIMITED_API, abi, check_header, include_flags, load_module
from engines.kernel.toolchains import find

MISSING = object()
"""In place of an attribute or an entry that is absent."""

_OF_FUNCTIONS = ("__code__", "__defaults__", "__kwdefaults__", "__dict__")


class State:
    """What some objects hold."""

    def __init__(self) -> None:
        self._types: list[Any] = []
        self._functions: list[Any] = []
        self._attributes: list[Any] = []
        self._names: list[Any] = []
        self._dicts: list[Any] = []
        self._lists: list[Any] = []
        self._others: list[tuple[Callable[[], Any], Any]] = []
        self._compared: tuple[Any, ...] = ()

    def keep_type(self, found: Any) -> None:
        self._types += (found, type(found))

    def keep_function(self, found: Any) -> tuple[Any, ...]:
        """Note a function's parts, and return its defaults, keyword defaults and dictionary."""
        parts = tuple(getattr(found, name) for name in _OF_FUNCTIONS)
        self._functions += (found, *parts)
        return parts[1:]

    def keep_attribute(self, found: Any, name: str) -> Any:
        """Note an attribute, and return it."""
        now = _attribute(found, name, MISSING)
        self._attributes += (found, sys.intern(name), now)
        return now

    def keep_names(self, names: dict[str, Any], wanted: Iterable[str]) -> list[Any]:
        """Note some entries of a dictionary, and return them."""
        now = []
        for name in wanted:
            now.append(names.get(name, MISSING))
            self._names += (names, sys.intern(name), now[-1])
        return now

    def keep_dict(self, entries: Any) -> None:
        """Note all entries of a dictionary, or of a class's namespace, and their order."""
        real = _behind(entries)
        if type(real) is dict:
            self._dicts += (real, tuple(real), tuple(real.values()))
        else:
            keys, values = (dict.__iter__, dict.values) if isinstance(entries, dict) else (iter, type(entries).values)
            self.keep_other(lambda: same(keys(entries)) + same(values(entries)))

    def keep_list(self, entries: list[Any]) -> None:
        if type(entries) is list:
            self._lists += (entries, tuple(entries))
        else:
            self.keep_other(lambda: same(list.__iter__(entries)))

    def keep_other(self, read: Callable[[], Any]) -> None:
        """Note what a function returns, which is compared by `==`."""
        self._others.append((read, read()))

    def comparison(self) -> tuple[Any, tuple[Any, ...]]:
        """A function that returns False if anything has changed, and its arguments. None if that is not all."""
        if not self._compared:
            parts = (self._types, self._functions, self._attributes, self._names, self._dicts, self._lists)
            self._compared = (MISSING, *map(tuple, parts))
        return None if self._others else comparison(), self._compared

    def has_changed(self) -> bool:
        """Whether any of it differs from what it was."""
        _, compared = self.comparison()
        try:
            if not comparison()(compared):
                return True
            for read, before in self._others:
                if read() != before:
                    return True
        except Exception:  # reading the program's own objects may raise anything
            return True
        return False


class _Same:
    """An object that equals itself only."""

    __slots__ = ("_found",)

    def __init__(self, found: Any) -> None:
        self._found = found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._found is other._found

    __hash__ = None  # type: ignore[assignment]


def same(entries: Iterable[Any]) -> list[Any]:
    """A list that equals another one of the same objects only."""
    return [*map(_Same, entries)]


def _behind(entries: Any) -> Any:
    """The dictionary that a class's namespace shows, where the interpreter tells."""
    if type(entries) is dict or sys.implementation.name != "cpython":
        return entries
    referents = gc.get_referents(entries) if type(entries) is type(vars(object)) else []
    return referents[0] if len(referents) == 1 else entries


# --- the comparison --------------------------------------------------------------------------------------------------


def unchanged(parts: tuple[Any, ...]) -> bool:
    """Whether all entries are as they were. Each part but the first is flat: two to five objects per entry."""
    missing, types, functions, attributes, names, dicts, lists = parts
    for found, kind in zip(types[::2], types[1::2]):
        if type(found) is not kind:
            return False
    for at in range(0, len(functions), 5):
        found, *before = functions[at : at + 5]
        if not all(a is b or _is_remade(a, b) for a, b in zip((getattr(found, n) for n in _OF_FUNCTIONS), before)):
            return False
    for holder, name, before in zip(names[::3], names[1::3], names[2::3]):
        if holder.get(name, missing) is not before:
            return False
    for entries, keys, values in zip(dicts[::3], dicts[1::3], dicts[2::3]):
        if not _are(entries, keys) or not _are(entries.values(), values):
            return False
    for entries, items in zip(lists[::2], lists[1::2]):
        if not _are(entries, items):
            return False
    for found, name, before in zip(attributes[::3], attributes[1::3], attributes[2::3]):
        now = _attribute(found, name, missing)
        if now is not before and not _is_remade(now, before):
            return False
    return True


def _attribute(found: Any, name: str, missing: Any) -> Any:
    try:
        return getattr(found, name)
    except Exception:  # ValueError for a variable that has no value yet
        return missing


def _are(now: Any, before: tuple[Any, ...]) -> bool:
    return len(now) == len(before) and all(a is b for a, b in zip(now, before))


def _is_remade(a: Any, b: Any) -> bool:
    """Whether two are equal tuples: PyPy makes the tuple of a function's defaults anew each time."""
    return type(a) is type(b) is tuple and _are(a, b)


@cache
def comparison() -> Callable[..., bool]:
    """`unchanged` in C where it can be built, else in Python."""
    return _in_c() or unchanged


def _in_c() -> Optional[Callable[..., bool]]:
    if sys.implementation.name != "cpython":
        return None
    with contextlib.suppress(Unavailable, OSError):
        check_header()
        for name in ("gcc", "clang", "tcc"):
            with contextlib.suppress(Unavailable, BuildFailed):
                tool = find(name)
                limited = LIMITED_API if tool.family == "tcc" else ""
                text = limited + Path(__file__).with_name("unchanged.c").read_text(encoding="ascii")
                flags = ("-std=gnu11", *(() if tool.family == "tcc" else ("-O2",)), *include_flags())
                recipe = ("unchanged", abi(), str(tool), *tool.command, *flags, text)
                make = lambda tool=tool, text=text, flags=flags: build(tool, [text], flags)  # noqa: E731
                with object_cache.kept_or_built("native", recipe, make) as built, loading():
                    found: Callable[..., bool] = load_module("zoomgrad_unchanged", str(built.path)).unchanged
                    return found
    return None
