"""What a function can reach besides its arguments, so that a change of it is noticed.

A function reads global names, variables of enclosing functions, defaults, and attributes of objects. `Watch` follows
them from object to object when the function is traced, and keeps a shallow copy of every list, dictionary and array.
`has_changed` compares the copies, entry by entry, by identity. Values are not watched, because each call reads their
numbers. Modules of the program are followed by the names that the function reads. Functions and classes of the standard
library and of installed packages are not followed. An object whose state can't be read, such as a deque, is
`unwatched`, and a function that reaches one is not compiled.

Example: `def loss(w): return scale * w` reads the global name `scale`. If the program assigns another number to it, the
next call traces the function again.
"""

from __future__ import annotations

import functools
import operator
import random
import sys
import sysconfig
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

MOST = 1_000_000
"""Entries of containers and arrays that a Watch compares."""

_PLAIN = (int, float, complex, str, bytes, range, slice, type(None), type(Ellipsis), types.BuiltinFunctionType)

_HEAP_TYPE, _IMMUTABLE_TYPE = 1 << 9, 1 << 8
"""Flags of classes. Those of CPython's own C modules are static or immutable."""


class Unwatched(NamedTuple):
    """An object whose changes would not be noticed."""

    where: str
    what: str


class Watch:
    """The state of everything that some objects reach."""

    def __init__(self, value: type, roots: Iterable[tuple[str, Any]]) -> None:
        """value: the class Value. roots: each with its name in messages.

        Raises TypeError for a Value of another program's class.
        """
        self._value = value
        self._containers: list[Any] = []
        self._copies: list[Any] = []
        self._names: list[tuple[Any, tuple[str, ...], tuple[Any, ...]]] = []
        self._arrays: list[tuple[Any, tuple[Any, ...], bytes]] = []
        self._keys: list[tuple[Any, tuple[Any, ...]]] = []
        """Dictionaries and classes, with their names in order."""
        self.values: dict[int, Any] = {}
        """Each Value that can be reached, by its id."""
        self.generators: list[Any] = []
        """Generators of random numbers."""
        self.unwatched: list[Unwatched] = []
        self._entries = 0
        self._seen: dict[int, Any] = {}  # keeps the objects alive, so that no id is reused
        self._modules_seen: set[tuple[int, frozenset[str]]] = set()
        self._waiting = list(roots)
        while self._waiting:
            where, found = self._waiting.pop()
            if isinstance(found, value):
                self.values[id(found)] = found
                if type(found) is not value and getattr(found, "__dict__", None):
                    self._waiting.append((where, found.__dict__))
                continue
            if isinstance(found, (*_PLAIN, types.ModuleType)) or id(found) in self._seen:
                continue
            self._entries += _size(found) + 1
            if self._entries > MOST:
                self._entries -= _size(found) + 1
                self.unwatched.append(Unwatched(where, f"a {type(found).__name__} of {_size(found):,} entries"))
                continue
            self._seen[id(found)] = found
            self._follow(where, found)

    def has_changed(self) -> bool:
        """Whether any of it differs from what it was."""
        try:
            for names, wanted, before in self._names:
                now = tuple(map(names.get, wanted))
                if not all(map(operator.is_, now, before)) and not all(map(_is_it, now, before)):
                    return True
            for holder, keys in self._keys:
                if tuple(holder) != keys:
                    return True
            for a, kind, copy in self._arrays:
                if (a.shape, a.dtype) != kind or a.tobytes() != copy:
                    return True
            return not all(map(_is_same, self._containers, self._copies))
        except Exception:  # a comparison of the program's own objects may raise anything
            return True

    def _follow(self, where: str, found: Any) -> None:
        if isinstance(found, types.FunctionType):
            self._function(where, found)
        elif isinstance(getattr(found, "__wrapped__", None), types.FunctionType):  # decorated, perhaps compiled
            self._waiting.append((where, found.__wrapped__))
        elif isinstance(found, functools.partial):
            self._waiting += [(where, each) for each in (found.func, *found.args, found.keywords)]
        elif isinstance(found, types.MethodType):
            self._waiting += [(where, found.__func__), (where, found.__self__)]
        elif isinstance(found, type):
            self._class(where, found)
        elif isinstance(found, (list, dict, set, bytearray)):
            self._keep(where, found)
        elif isinstance(found, (tuple, frozenset)):
            self._waiting += [(f"an entry of {where}", each) for each in found]
        elif type(found).__module__.partition(".")[0] == "numpy" and hasattr(found, "tobytes"):
            if found.dtype.hasobject:
                self._waiting.append((where, found.tolist()))
                self.unwatched.append(Unwatched(where, "an array of objects"))
            elif hasattr(type(found), "__setitem__"):  # not a scalar
                self._arrays.append((found, (found.shape, found.dtype), found.tobytes()))
        else:
            self._object(where, found)

    def _keep(self, where: str, container: Any) -> None:
        self._containers.append(container)
        self._copies.append(container.copy())
        if isinstance(container, dict):
            self._keys.append((container, tuple(container)))
        entries = container.items() if isinstance(container, dict) else ((None, each) for each in container)
        for key, each in entries:
            if not isinstance(each, _PLAIN):
                self._waiting.append((f"{where}.{key}" if isinstance(key, str) else f"an entry of {where}", each))

    def _object(self, where: str, found: Any) -> None:
        if is_foreign_value(found):
            raise TypeError(_foreign(where, found))
        state = getattr(found, "__dict__", None)
        if isinstance(state, dict):
            self._keep(where, state)
        slots = [name for cls in type(found).__mro__ for name in _slots(cls)]
        attributes = _Attributes(found)
        names = ("__class__", *slots)
        self._names.append((attributes, names, tuple(map(attributes.get, names))))
        self._waiting += [(f"{where}.{name}", attributes.get(name)) for name in slots]
        if isinstance(found, random.Random) or hasattr(found, "bit_generator"):
            self.generators.append(found)
        elif not all(map(_is_in_python, type(found).__mro__)):
            self.unwatched.append(Unwatched(where, f"a {type(found).__name__}"))
        self._waiting.append((type(found).__name__, type(found)))

    def _class(self, where: str, found: type) -> None:
        for cls in found.__mro__:
            if not is_program(sys.modules.get(cls.__module__), "") or issubclass(cls, self._value):
                continue
            entries = dict(vars(cls))
            self._keys.append((vars(cls), tuple(entries)))
            self._names.append((_ClassNames(cls), tuple(entries), tuple(entries.values())))
            for name, each in entries.items():
                each = getattr(each, "__func__", getattr(each, "fget", each))
                if not name.startswith("__") or callable(each):
                    self._waiting.append((f"{where}.{name}", each))

    def _function(self, where: str, found: types.FunctionType) -> None:
        # PyPy's built-in functions have code without a file.
        if not is_program(None, getattr(found.__code__, "co_filename", "<frozen")):
            return
        names = sorted(_names_of(found.__code__))
        values = tuple(map(found.__globals__.get, names))
        if names:
            self._names.append((found.__globals__, tuple(names), values))
        self._waiting += zip(names, values)
        enclosing = [_Cell(cell).get("") for cell in found.__closure__ or ()]
        self._modules(set(names), [*values, *enclosing])
        attributes, own = _Attributes(found), ("__code__", "__defaults__", "__kwdefaults__")
        self._names.append((attributes, own, tuple(map(attributes.get, own))))
        for name, cell in zip(found.__code__.co_freevars, found.__closure__ or ()):
            self._names.append((_Cell(cell), (name,), (_Cell(cell).get(name),)))
            self._waiting.append((name, _Cell(cell).get(name)))
        defaults = (*(found.__defaults__ or ()), *(found.__kwdefaults__ or {}).values())
        self._waiting += [(f"a default of {where}", each) for each in defaults]
        if found.__dict__:
            self._keep(where, found.__dict__)

    def _modules(self, names: set[str], values: Iterable[Any]) -> None:
        """Follow what a function may read of the program's own modules: the attributes that have one of these names."""
        waiting = [each for each in values if isinstance(each, types.ModuleType)]
        while waiting:
            module = waiting.pop()
            if (id(module), frozenset(names)) in self._modules_seen or not is_program(module, ""):
                continue
            self._modules_seen.add((id(module), frozenset(names)))
            wanted = tuple(sorted(names & vars(module).keys()))
            found = tuple(map(vars(module).get, wanted))
            self._names.append((vars(module), wanted, found))
            self._waiting += [(f"{module.__name__}.{name}", each) for name, each in zip(wanted, found)]
            waiting += [each for each in found if isinstance(each, types.ModuleType)]


def _is_it(a: Any, b: Any) -> bool:
    """Whether two are one object. PyPy makes the tuple of a function's defaults anew each time."""
    return a is b or (type(a) is type(b) is tuple and len(a) == len(b) and all(map(operator.is_, a, b)))


def _is_same(a: Any, b: Any) -> bool:
    """Whether two containers of one kind hold the same objects."""
    if len(a) != len(b):
        return False
    if isinstance(a, dict):
        return all(map(operator.is_, a.values(), b.values()))
    return all(map(operator.is_, a, b)) if isinstance(a, list) else bool(a == b)


def _is_in_python(cls: type) -> bool:
    """Whether Python code made the class, so that its objects' state is in dictionaries and slots."""
    if cls in (object, types.SimpleNamespace):
        return True
    return bool(cls.__flags__ & _HEAP_TYPE) and not cls.__flags__ & _IMMUTABLE_TYPE


class _Attributes:
    """An object's attributes, read by name as from a dictionary."""

    def __init__(self, found: Any) -> None:
        self._found = found

    def get(self, name: str) -> Any:
        return getattr(self._found, name, None)


class _Cell:
    """A variable of an enclosing function, read by name as from a dictionary."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def get(self, _: str) -> Any:
        try:
            return self._cell.cell_contents
        except ValueError:  # it has no value yet
            return None


class _ClassNames:
    """A class's own names, read as from a dictionary."""

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def get(self, name: str) -> Any:
        return vars(self._cls).get(name)


def _size(found: Any) -> int:
    if isinstance(found, (list, dict, set, tuple, frozenset, bytearray)):
        return len(found)
    size = getattr(found, "size", 1) if hasattr(found, "tobytes") else 1
    return size if isinstance(size, int) else 1


def is_foreign_value(found: Any) -> bool:
    """Whether it looks like a Value of another micrograd."""
    return not isinstance(found, type) and all(
        hasattr(type(found), name) for name in ("backward", "__add__", "__mul__")
    )


def _foreign(where: str, found: Any) -> str:
    cls = type(found)
    return (
        f"{where} is a {cls.__qualname__} of {cls.__module__}, and only zoomgrad's Value can be compiled\n"
        "  Import Value from zoomgrad: `from zoomgrad import Value`."
    )


def _names_of(code: types.CodeType) -> set[str]:
    """Names that may be global, of the code and of the functions in it."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return set(code.co_names).union(*map(_names_of, inner))


def _slots(cls: type) -> list[str]:
    slots = vars(cls).get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


@functools.cache
def _installed() -> tuple[str, ...]:
    """Folders whose code is not the program's."""
    paths = sysconfig.get_paths()
    ours = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "engines")]
    return tuple({paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")} | set(ours))


def is_program(module: Any, file: str) -> bool:
    """Whether code is the program's, not a library's."""
    if module is not None:
        if module.__name__ == "builtins":
            return False
        file = getattr(module, "__file__", None) or ""
    return not file.startswith((*_installed(), "<frozen"))
