"""Copies of what objects hold, and the comparison with what they hold now.

Each call of a compiled function makes this comparison, so it is written twice: `unchanged` below, and the same in
`unchanged.c`, which takes a hundredth of the time. Everything is compared by identity. `restore` undoes changes.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Callable, Optional

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.kernel import object_cache
from zoomgrad.engines.kernel.building import BuildFailed, build, loading
from zoomgrad.engines.kernel.extension import LIMITED_API, abi, check_header, include_flags, load_module
from zoomgrad.engines.kernel.toolchains import find

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
        self._owners: dict[int, type] = {}
        """Classes by the ids of their dictionaries."""
        self._others: list[tuple[Callable[[], Any], Any, Callable[[Any], Any]]] = []
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
        """Note all entries of a dictionary, and their order."""

        def write(before: list[Any]) -> None:
            dict.clear(entries)
            dict.update(entries, zip(before[::2], before[1::2]))

        if type(entries) is dict:
            self._dicts += (entries, tuple(entries), tuple(entries.values()))
        else:
            self.keep_other(lambda: [*chain.from_iterable(dict.items(entries))], write)

    def keep_class(self, found: type) -> None:
        """Note all entries of a class's namespace."""
        entries = _behind(vars(found))
        if type(entries) is dict:
            self._owners[id(entries)] = found
            self.keep_dict(entries)
        else:
            self.keep_other(
                lambda: [*chain.from_iterable(entries.items())],
                lambda before: _put_class_back(found, dict(zip(before[::2], before[1::2]))),
            )

    def keep_list(self, entries: list[Any]) -> None:
        if type(entries) is list:
            self._lists += (entries, tuple(entries))
        else:
            self.keep_other(
                lambda: [*list.__iter__(entries)], lambda before: list.__setitem__(entries, slice(None), before)
            )

    def keep_other(self, read: Callable[[], Any], write: Callable[[Any], Any] = bool) -> None:
        """Note what a function returns: a list, whose entries are compared by identity, or something else.

        write: puts it back.
        """
        self._others.append((read, read(), write))

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
            for read, before, _ in self._others:
                if _differs(read(), before):
                    return True
        except Exception:  # reading the program's own objects may raise anything
            return True
        return False

    def restore(self) -> bool:
        """Put everything back as it was. Returns whether anything had changed.

        A change that another thread made meanwhile is lost, as one made between a read and a write of the program
        would be. Leaving the trace's own changes would give wrong results wherever any thread waits in the background.
        """
        if not self.has_changed():
            return False
        for found, kind in _rows(self._types, 2):
            if type(found) is not kind:
                found.__class__ = kind
        for holder, name, before in _rows(self._names, 3):
            if holder.get(name, MISSING) is not before:
                holder.update({name: before}) if before is not MISSING else holder.pop(name)
        for entries, keys, values in _rows(self._dicts, 3):
            if id(entries) in self._owners:
                _put_class_back(self._owners[id(entries)], dict(zip(keys, values)))
            elif not (_are(entries, keys) and _are(entries.values(), values)):
                entries.clear()
                entries.update(zip(keys, values))
        for entries, items in _rows(self._lists, 2):
            if not _are(entries, items):
                entries[:] = items
        for found, name, before in _rows(self._attributes, 3):
            _put_back(found, name, before, _attribute(found, name, MISSING))
        for read, before, write in self._others:
            if _differs(read(), before):
                write(before)
        return True


def _differs(now: Any, before: Any) -> bool:
    return not _are(now, before) if type(now) is list else bool(now != before)


def _rows(flat: list[Any], width: int) -> Iterable[Any]:
    return (flat[at : at + width] for at in range(0, len(flat), width))


def _put_back(found: Any, name: str, before: Any, now: Any) -> None:
    """Give an object an earlier attribute."""
    if now is not before and not _is_remade(now, before):
        with contextlib.suppress(AttributeError, TypeError):  # it can't be set
            delattr(found, name) if before is MISSING else setattr(found, name, before)


def _put_class_back(found: type, before: dict[str, Any]) -> None:
    """Give a class its earlier attributes."""
    for name in {*vars(found), *before}:
        _put_back(found, name, before.get(name, MISSING), vars(found).get(name, MISSING))


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


def _are(now: Any, before: Sequence[Any]) -> bool:
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
