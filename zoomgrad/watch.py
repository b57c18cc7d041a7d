"""What a function can reach besides its arguments, so that a change of it is noticed.

A function reads global names, variables of enclosing functions, defaults, and attributes of objects. `Watch` follows
them from object to object after the function was traced, and `state.py` keeps a shallow copy of each. Only the code
that ran is read for names: as long as nothing that it reads has changed, the function takes the same path again.
Values are not watched, because each call reads their numbers.

What can't be followed is `unwatched`, and a function that reaches it is not compiled: an object whose state can't be
read, such as a deque, a function or class of a library that is not on the lists of `permitted.py`, and code that ran
although no function of it was found.

Example: `def loss(w): return scale * w` reads the global name `scale`. If the program assigns another number to it, the
next call traces the function again.
"""

from __future__ import annotations

import abc
import builtins
import functools
import random
import struct
import sys
import sysconfig
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from zoomgrad.permitted import BUILTINS, facts_of, is_permitted, shown
from zoomgrad.state import State

MOST = 1_000_000
"""Entries of containers and arrays that a Watch compares."""

_PLAIN = {int, float, complex, bool, str, bytes, range, type(None), type(Ellipsis), type(NotImplemented)}

_HEAP_TYPE, _IMMUTABLE_TYPE = 1 << 9, 1 << 8
"""Flags of classes. Those of CPython's own C modules are static or immutable."""

_IN_C = "MemberDescriptorType GetSetDescriptorType MethodDescriptorType WrapperDescriptorType ClassMethodDescriptorType"
_OF_CLASSES = tuple({getattr(types, name) for name in _IN_C.split()} - {types.FunctionType})  # as which PyPy has some
"""Attributes that C code adds to a class, and slots. They have no state of their own."""

_CONTAINERS = (list, dict, set, bytearray, tuple, frozenset)
_RANDOM = random.Random.__mro__[1]
_BASES = (*_CONTAINERS, int, float, complex, str, bytes, types.SimpleNamespace, type, _RANDOM, object)
"""Classes in C whose objects have no state but their entries and attributes."""


_PARTS: dict[Any, tuple[str, ...]] = {
    functools.partial: ("func", "args", "keywords", "__dict__"),
    functools.cached_property: ("func",),
    staticmethod: ("__func__", "__dict__"),
    classmethod: ("__func__", "__dict__"),
    property: ("fget", "fset", "fdel"),
    slice: ("start", "stop", "step"),
}
"""Classes whose objects hold these attributes and nothing else."""

_WORD = struct.calcsize("P")

ATTRIBUTES = ("data", "grad", "label", "_op", "_name", "_prev", "_constant", "_row", "_backward")
BACKWARD = ("backward", "_contribute")
"""What a class that derives from Value can't define: a trace and a program use those of Value."""


class Followed:
    """Base of an object that stands for a function, `_function`, and has attributes of its own."""

    __slots__ = ()
    _function: Any


class Watch:
    """The state of everything that some objects reach."""

    def __init__(self, value: type, roots: Iterable[tuple[str, Any]], ran: Mapping[int, types.CodeType]) -> None:
        """value: the class Value. roots: each with its name in messages. ran: the program's code that ran, by its id.

        Raises TypeError for a Value of another program's class.
        """
        self._value = value
        self._ran = ran
        self._state = State()
        self.has_changed, self.comparison = self._state.has_changed, self._state.comparison
        self.restore = self._state.restore
        facts = [facts_of(code) for code in ran.values()]
        self.attributes = frozenset[str]().union(*(each.attributes for each in facts))
        """Names of attributes in the code that ran."""
        self.objections = [each.objection for each in facts if each.objection]
        """Why the code that ran is refused."""
        self.values: dict[int, Any] = {}
        """Each Value that can be reached, by its id."""
        self.unwatched: list[str] = []
        """Objects whose changes would not be noticed."""
        self._entries = 0
        self._seen: dict[int, Any] = {}  # keeps the objects alive, so that no id is reused
        self._found: set[int] = set()  # code of functions that were followed
        self._waiting = [*roots, (value.__name__, value)]
        while self._waiting:
            where, found = self._waiting.pop()
            if type(found) in _PLAIN or id(found) in self._seen:
                continue
            self._entries += _size(found) + 1
            if self._entries > MOST:
                self._entries -= _size(found) + 1
                self._miss(where, f"a {type(found).__name__} of {_size(found):,} entries,")
                continue
            self._seen[id(found)] = found
            self._follow(where, found)
        for key, code in ran.items():
            if key not in self._found:
                self._miss(code.co_name, "code that it can't find a function of,")

    def _miss(self, where: str, what: str) -> None:
        self.unwatched.append(f"{where}, {what}")

    def _follow(self, where: str, found: Any) -> None:
        state = self._state
        if getattr(found, "__class__", None) is not type(found):  # isinstance would say what it isn't
            self._miss(where, f"a {type(found).__name__},")
        elif isinstance(found, self._value):
            self.values[id(found)] = found
            self._attributes(where, found, self.attributes)
            self._waiting.append((where, type(found)))
        elif isinstance(found, types.FunctionType):
            self._function(where, found)
        elif isinstance(found, types.BuiltinFunctionType):
            owner = getattr(found, "__self__", None)
            # `isinstance` is replaced while a function is traced, where it is found by its own name.
            if not is_permitted(found) or found is isinstance:
                self._miss(where, f"the function {shown(found)},")
            elif not isinstance(owner, (type, types.ModuleType)):
                self._waiting.append((where, owner))
        elif isinstance(found, Followed):
            self._waiting += [(where, found._function), (where, vars(found))]
            if self.attributes.intersection(type(found).__slots__):
                self._miss(where, "whose insides it reads,")
        elif type(found) in _PARTS:  # a derived class may hold more
            self._waiting += [(where, state.keep_attribute(found, name)) for name in _PARTS[type(found)]]
        elif isinstance(found, types.MethodType):
            self._waiting += [(where, found.__func__), (where, found.__self__)]
        elif isinstance(found, types.ModuleType):
            names = sorted(self.attributes)
            self._waiting += [
                (f"{found.__name__}.{name}", each) for name, each in zip(names, state.keep_names(vars(found), names))
            ]
            if type(found) is not types.ModuleType:
                self._waiting.append((where, type(found)))
        elif isinstance(found, type):
            self._class(where, found)
        elif isinstance(found, _CONTAINERS):
            self._container(where, found)
        elif _is_of_numpy(type(found)) and hasattr(found, "tobytes"):
            self._array(where, found)
        elif type(found) is not object:  # a marker
            self._object(where, found)

    def _container(self, where: str, found: Any) -> None:
        # A class of the program may hide its entries from iteration.
        base = next(each for each in _CONTAINERS if isinstance(found, each))
        entries, names = [*base.__iter__(found)], []
        if isinstance(found, dict):
            self._state.keep_dict(found)
            names = [*entries, *entries]
            entries += dict.values(found)
        elif isinstance(found, list):
            self._state.keep_list(found)
        elif isinstance(found, set):
            self._state.keep_other(
                lambda: [*set.__iter__(found)], lambda before: (set.clear(found), set.update(found, before))
            )
        elif isinstance(found, bytearray):
            self._state.keep_other(
                lambda: bytes(bytearray.__iter__(found)),
                lambda before: bytearray.__setitem__(found, slice(None), before),
            )
            entries = []
        for place, each in enumerate(entries):
            if type(each) not in _PLAIN:
                name = names[place] if names else None
                self._waiting.append((f"{where}.{name}" if isinstance(name, str) else f"an entry of {where}", each))
        if type(found) not in _CONTAINERS:
            self._object(where, found)

    def _array(self, where: str, found: Any) -> None:
        if found.dtype.hasobject:
            self._waiting.append((where, found.tolist()))
            self._miss(where, "an array of objects,")
        elif hasattr(type(found), "__setitem__"):  # not a scalar
            copy = found.copy()
            self._state.keep_other(
                lambda: (found.shape, found.strides, found.dtype, found.tobytes()),
                lambda _: found.__setitem__(..., copy),
            )
            if type(found).__name__ != "ndarray":
                self._miss(where, f"a {type(found).__name__},")

    def _object(self, where: str, found: Any) -> None:
        if is_foreign_value(found):
            raise TypeError(foreign(where, found))
        kind = type(found)
        self._attributes(where, found)
        if isinstance(found, random.Random) or hasattr(kind, "bit_generator"):
            # A profile function sees no call of a generator of NumPy, but the code that ran names the method.
            if any(name in self.attributes for name in dir(kind) if not name.startswith("_")):
                self._miss(where, f"a {kind.__name__}, from which it may draw,")
        elif not _shows_its_state(kind, _BASES):
            self._miss(where, f"a {kind.__name__},")
        self._waiting.append((kind.__name__, kind))

    def _attributes(self, where: str, found: Any, names: Optional[Iterable[str]] = None) -> None:
        """Its class, its dictionary, and its slots. Those of a Value itself are not watched.

        names: the attributes that count, by default all.
        """
        kind = type(found)
        self._state.keep_type(found)
        if _in_mro(kind, "__dict__"):
            entries = self._state.keep_attribute(found, "__dict__")
            self._waiting += zip(names or (), self._state.keep_names(entries, names or ()))
            if names is None:
                self._waiting.append((where, entries))
        for name, each in slots_of(kind, self._value):
            if names is not None and name not in names:
                continue
            if getattr(kind, name) is not each:
                self._miss(where, f"whose slot {name} is hidden,")
            self._waiting.append((f"{where}.{name}", self._state.keep_attribute(found, name)))

    def _class(self, where: str, found: type) -> None:
        if type(found) is not type:
            self._waiting.append((where, type(found)))
        if issubclass(found, self._value) and not _shows_its_state(found, self._value.__mro__):
            self._miss(where, f"the class {shown(found)}, which derives from Value,")
        for cls in found.__mro__:
            if not is_in_python(cls):
                if cls not in _BASES and not is_permitted(cls):
                    self._miss(where, f"the class {shown(cls)},")
            elif cls is not object and (cls is found or id(cls) not in self._seen):
                self._seen[id(cls)] = cls
                self._state.keep_class(cls)
                if cls.__base__ is not object:  # else they can't be replaced
                    self._state.keep_attribute(cls, "__bases__")
                own = is_program(sys.modules.get(cls.__module__), "")
                for name, each in list(vars(cls).items()):
                    is_c = isinstance(each, _OF_CLASSES) or type(each).__name__ in ("_tuplegetter", "_abc_data")
                    is_c = is_c or (not own and isinstance(each, types.BuiltinFunctionType))
                    if name == "_abc_impl":  # classes that register there later change what isinstance says
                        self._state.keep_other(abc.get_cache_token)
                    is_called = callable(each) or type(each) is functools.partialmethod
                    if not is_c and (is_called or not name.startswith("__")):
                        self._waiting.append((f"{where}.{name}", each))

    def _function(self, where: str, found: types.FunctionType) -> None:
        state, code = self._state, found.__code__
        # PyPy's built-in functions have code without a file.
        is_ours = is_program(None, getattr(code, "co_filename", "<frozen"))
        cells = found.__closure__ or ()
        *defaults, own = state.keep_function(found)
        self._waiting.append((where, own))
        if not is_ours:  # a library's function may call one of the program's, which it decorates
            contents = [getattr(cell, "cell_contents", None) for cell in cells]
            self._waiting += [(where, each) for each in contents if isinstance(each, types.FunctionType)]
            return
        if id(code) not in self._ran:
            return
        self._waiting += [(f"a default of {where}", each) for each in defaults]
        self._found |= _codes(code)
        names = sorted(facts_of(code).names)
        self._waiting += zip(names, self._globals(where, found.__globals__, names))
        for name, cell in zip(code.co_freevars, cells):
            self._waiting.append((name, state.keep_attribute(cell, "cell_contents")))

    def _globals(self, where: str, names: dict[str, Any], wanted: list[str]) -> list[Any]:
        """The objects of the global names, without the built-in ones that are permitted."""
        built_in = [name for name in wanted if name not in names and hasattr(builtins, name)]
        absent = [name for name in wanted if name not in names and name != "isinstance"]
        self._state.keep_names(vars(builtins), absent)
        if names.get("__builtins__") not in (builtins, vars(builtins)):
            self._miss(where, "whose built-in functions are not Python's,")
        for name in built_in:
            found = getattr(builtins, name)
            if name not in BUILTINS and not (isinstance(found, type) and issubclass(found, BaseException)):
                self.objections.append(f"uses {name}() in {where}")
        found = self._state.keep_names(names, wanted)
        return [None if name in built_in else each for name, each in zip(wanted, found)]


def _codes(code: types.CodeType) -> set[int]:
    """Ids of the code and of the functions in it."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return {id(code)}.union(*map(_codes, inner))


def is_in_python(cls: type) -> bool:
    """Whether Python code made the class, so that its objects' state is in dictionaries and slots."""
    if cls is object or not cls.__flags__ & _HEAP_TYPE or cls.__flags__ & _IMMUTABLE_TYPE:
        return cls is object
    base: Any = cls.__base__
    if not hasattr(cls, "__basicsize__"):  # PyPy, whose classes in C have no flags
        return True
    # A class in C may look like one in Python, but its objects are larger than their slots.
    own = [cls.__dictoffset__ != base.__dictoffset__, cls.__weakrefoffset__ != base.__weakrefoffset__]
    own += [isinstance(each, types.MemberDescriptorType) for each in vars(cls).values()]
    return bool(cls.__basicsize__ - base.__basicsize__ <= _WORD * sum(own))


def slots_of(kind: type, value: type) -> list[tuple[str, Any]]:
    """The slots that Python classes add to a class, except those of the class Value."""
    classes = [cls for cls in kind.__mro__ if cls not in value.__mro__ and is_in_python(cls)]
    found = [(name, each) for cls in classes for name, each in list(vars(cls).items())]
    return [(name, each) for name, each in found if isinstance(each, types.MemberDescriptorType)]


def _is_of_numpy(kind: type) -> bool:
    return not is_in_python(kind) and kind.__module__.partition(".")[0] == "numpy"


def _in_mro(kind: type, name: str) -> bool:
    return any(name in vars(cls) for cls in kind.__mro__)


def _shows_its_state(kind: type, bases: Sequence[type]) -> bool:
    """Whether a class in Python, derived from some of these bases, doesn't say itself what its attributes are."""
    derived = [cls for cls in kind.__mro__ if cls not in bases]
    if not all(map(is_in_python, derived)):
        return False
    if any(not vars(cls).keys().isdisjoint((*ATTRIBUTES, *BACKWARD)) for cls in derived if bases is not _BASES):
        return False
    own = next((vars(cls)["__dict__"] for cls in kind.__mro__ if "__dict__" in vars(cls)), None)
    return isinstance(own, (types.GetSetDescriptorType, types.MemberDescriptorType, type(None))) and any(
        kind.__getattribute__ is each.__getattribute__ for each in bases
    )


def _size(found: Any) -> int:
    if isinstance(found, _CONTAINERS):
        return len(found)
    size = getattr(found, "size", 1) if hasattr(found, "tobytes") else 1
    return size if isinstance(size, int) else 1


def is_foreign_value(found: Any) -> bool:
    """Whether it looks like a Value of another micrograd."""
    return not isinstance(found, type) and all(
        hasattr(type(found), name) for name in ("backward", "__add__", "__mul__")
    )


def foreign(where: str, found: Any) -> str:
    """An error message for such a Value."""
    cls = type(found)
    return (
        f"{where} is a {cls.__qualname__} of {cls.__module__}, and only zoomgrad's Value can be compiled\n"
        "  Import Value from zoomgrad: `from zoomgrad import Value`."
    )


@functools.cache
def _folders() -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Folders of NumPy and our own code, of installed packages, and of the standard library, which may hold others."""
    paths = sysconfig.get_paths()
    installed = tuple({paths["purelib"], paths["platlib"]})
    here = Path(__file__).parent
    ours = (str(here), *(str(Path(each) / "numpy") for each in installed))
    return ours, installed, tuple({paths["stdlib"], paths["platstdlib"]})


def is_program(module: Any, file: str) -> bool:
    """Whether code is the program's, not the standard library's, NumPy's or ours.

    An installed package's code counts as the program's.
    """
    if module is not None:
        if module.__name__ == "builtins":
            return False
        file = vars(module).get("__file__") or ""
        if not isinstance(file, str):
            return True
    ours, installed, standard = _folders()
    if file.startswith((*ours, "<frozen", "<builtin>")):
        return False
    return file.startswith(installed) or not file.startswith(standard)
