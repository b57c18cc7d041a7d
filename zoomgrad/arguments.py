"""The arguments of one call: Values, numbers, and the structure that holds them.

argument  = Value                          its number is read at each call, and it receives a gradient
          | int | float                    an input
          | array                          of NumPy or `array`: inputs
          | list | tuple | dict            of arguments; the keys of a dict are static
          | bool | None | text             static
          | object                         static: a model, for example, by its identity

The structure is a nested tuple, the first part of a variant's key. Example: `([a, b, a], 0.5, "sum")` has the values
`a, b`, the numbers `0.5`, and the structure `(tuple, (list, v0, v1, v0), n, "sum")`.
"""

from __future__ import annotations

import enum
import itertools
import numbers
from array import array
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Optional

from zoomgrad.exactness import LARGEST_INT
from zoomgrad.tracing import datum_class
from zoomgrad.watch import foreign, is_foreign_value, is_in_python


class Found(NamedTuple):
    """The arguments of one call, taken apart."""

    structure: Any
    values: list[Any]
    """Each Value once, in the order of the arguments."""
    numbers: list[float]
    objects: list[Any]
    """Static objects, which the structure names by identity."""
    arguments: Any
    """As they were given."""

    arrays: list[Any]
    """Arrays of NumPy."""


def take_apart(value: Any, arguments: Any) -> Found:
    """Flatten the arguments. Raises TypeError for one that can't be a constant, and ValueError for a large int."""
    found = Found(None, [], [], [], arguments, [])
    structure = _flatten(value, arguments, found, {})
    return found._replace(structure=structure)


def _flatten(value: Any, a: Any, found: Found, places: dict[int, int]) -> Any:
    kind: Any = type(a)
    if kind is float:
        found.numbers.append(a)
        return float
    if isinstance(a, value):
        if a._prev:
            raise TypeError(
                f"an argument is the result of {a._op!r}\n"
                "  Pass the leaves that it is computed from, and compute it in the function."
            )
        if id(a) not in places:
            places[id(a)] = len(found.values)
            found.values.append(a)
        return ("value", places[id(a)], kind)
    if kind in _STATIC:
        return ("static", kind, a)
    if kind in (list, tuple):
        parts = [_flatten(value, each, found, places) for each in a]
        same = parts and all(part is float for part in parts)
        return (kind, len(parts), float) if same else (kind, *parts)
    if kind is dict:
        return (
            kind,
            tuple(_key(value, each, found, places) for each in a),
            *[_flatten(value, each, found, places) for each in a.values()],
        )
    if isinstance(a, array) or (hasattr(a, "__array_interface__") and getattr(a, "ndim", 0) > 0):
        return _array(a, found)
    dtype = getattr(a, "dtype", None)  # of a scalar of NumPy
    if kind is int or (getattr(dtype, "str", "")[1:] in _EXACT and not is_in_python(kind)):
        is_whole = kind is int or getattr(dtype, "kind", "") == "i"
        if is_whole and abs(int(a)) > LARGEST_INT:
            raise ValueError(f"the int {a} is not exact as a double\n  Convert it: float({a}).")
        found.numbers.append(float(a))
        return int if kind is int else ("number", kind, int if is_whole else float)
    if isinstance(a, numbers.Number) and not isinstance(a, enum.Enum):
        raise TypeError(f"an argument is a {kind.__name__}, which computes in its own way\n  Convert it: float(…).")
    return _static(a, found)


def _key(value: Any, key: Any, found: Found, places: dict[int, int]) -> Any:
    """The structure of a dict's key. Keys may be equal and differ: 1 and True, 0.0 and -0.0."""
    kind = type(key)
    if kind is tuple:
        return (kind, *[_key(value, each, found, places) for each in key])
    if kind in (int, float):
        return ("static", kind, key, repr(key))
    return _flatten(value, key, found, places) if kind in _STATIC or isinstance(key, value) else _static(key, found)


_STATIC = {bool, str, bytes, type(None)}

_EXACT = ("f8", "i8")
"""Types of NumPy whose arithmetic is that of Python's floats and ints."""


def _array(a: Any, found: Found) -> Any:
    is_own = isinstance(a, array)
    if is_in_python(type(a)) and type(a).__name__ != "memmap":
        raise TypeError(f"an argument is a {type(a).__name__}\n  Convert it: {'array' if is_own else 'np.array'}(…).")
    if (a.typecode == "u") if is_own else (a.dtype.str[1:] not in _EXACT):
        raise TypeError(
            f"an argument is an array of {a.typecode if is_own else a.dtype}, not of doubles\n"
            f"  Convert it: {'a.tolist()' if is_own else 'a.astype(float)'}."
        )
    flat = a.tolist() if is_own else a.ravel().tolist()
    is_whole = a.typecode not in "fd" if is_own else a.dtype.kind == "i"
    if is_whole and flat and max(map(abs, flat)) > LARGEST_INT:
        raise ValueError("an array holds ints that are not exact as doubles\n  Convert it: a.astype(float).")
    found.numbers.extend(flat)
    if not is_own:
        found.arrays.append(a)
    shape, strides = ((len(a),), ()) if is_own else (a.shape, a.strides)
    return ("array", type(a), shape, int if is_whole else float, strides)


def _static(a: Any, found: Found) -> Any:
    if is_foreign_value(a):
        raise TypeError(foreign("an argument", a))
    if hasattr(a, "__next__"):
        raise TypeError(f"an argument is a {type(a).__name__}, which can be read only once\n  Pass a list: list(…).")
    if type(a).__hash__ is None:
        raise TypeError(
            f"an argument is a {type(a).__name__}, which is neither data nor a constant\n"
            "  Pass numbers, lists, tuples, dicts, NumPy arrays, a model, or something hashable."
        )
    found.objects.append(a)
    return ("object", id(a), type(a).__name__)


def rebuilt(value: Any, structure: Any, found: Found) -> tuple[Any, list[Any], list[tuple[Any, list[Any]]]]:
    """The arguments with a Datum in place of each number, these Datums, and each container with its entries."""
    containers: list[tuple[Any, list[Any]]] = []
    data: list[Any] = []
    objects = {id(each): each for each in found.objects}
    remaining = iter(found.numbers)

    def datum(kind: Any, of: Any) -> Any:
        number = next(remaining)
        data.append(datum_class(value, kind, of is int)(int(number) if of is int else number))
        return data[-1]

    def build(s: Any) -> Any:
        if s in (int, float):
            return datum(s, s)
        kind = s[0]
        if kind in (list, tuple):
            same = s[-1] is float and type(s[1]) is int
            made = kind([datum(float, float) for _ in range(s[1])] if same else map(build, s[1:]))
            containers.append((made, list(made)))
            return made
        if kind is dict:
            made = dict(zip(map(build, s[1]), map(build, s[2:])))
            containers.append((made, list(made)))
            containers.append((made.values(), list(made.values())))
            return made
        if kind == "array":
            made, memory = _rebuilt_array(s, datum)
            containers.append((memory, list(memory)))
            return made
        if kind == "value":
            return found.values[s[1]]
        if kind == "number":
            return datum(s[1], s[2])
        return s[2] if kind == "static" else objects[s[1]]

    return build(structure), data, containers


def _rebuilt_array(s: Any, datum: Callable[[type, type], Any]) -> tuple[Any, Any]:
    """The array, and the memory that it shows."""
    _, kind, shape, of, strides = s
    if kind is array:
        entries = _Entries(datum(of, of) for _ in range(shape[0]))
        return entries, entries
    import numpy as np

    number = np.int64 if of is int else np.float64
    steps = _steps(shape, strides)
    ends = [step * max(0, length - 1) for step, length in zip(steps, shape)]
    memory = np.empty(1 + sum(map(abs, ends)), dtype=object)
    begin = -sum(end for end in ends if end < 0)
    filled = np.lib.stride_tricks.as_strided(memory[begin:], shape, [step * memory.itemsize for step in steps])
    for place in np.ndindex(*shape):
        filled[place] = datum(number, of)
    return filled, memory


def _steps(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """Strides in entries of a smaller array with the same order in memory, which `ravel("K")` and `ravel("A")` follow.

    A gap stays a gap, but a small one. Example: strides (8, 640, 160) of shape (10, 6, 4) are steps (1, 44, 11).
    """
    steps = [0] * len(shape)
    step, size, end = 1, 1, 8  # of the last axis: step, entries and bytes up to the next place
    for distance in sorted({abs(stride) for stride, length in zip(strides, shape) if length > 1} - {0}):
        step = size if distance == end else size + step
        size, end = step, distance
        for axis, length in enumerate(shape):
            if length > 1 and abs(strides[axis]) == distance:  # if several, they overlap
                steps[axis] = step if strides[axis] > 0 else -step
                size, end = size * length, end * length
    return steps


class _Entries(list):  # type: ignore[type-arg]
    """The entries of an `array`, of which isinstance says in a trace that they are one."""

    is_datum, kind = True, array


def describe(structure: Any) -> str:
    """A structure as a short text."""
    arguments, named = structure[1:]
    positional = [_described(each) for each in _entries(arguments)]
    by_name = [f"{name[2]}={_described(each)}" for name, each in zip(named[1], named[2:])]
    return f"({', '.join([*positional, *by_name])})"


def _entries(s: Any) -> list[Any]:
    is_same = s[-1] is float and type(s[1]) is int
    return [float] * s[1] if is_same else list(s[1:])


def _described(s: Any) -> str:
    kind = s if s in (int, float) else s[0]
    if kind in (int, float, "number"):
        return "number"
    if kind is dict:
        return f"dict of {len(s[1])}"
    if kind in (list, tuple):
        parts = [_described(each) for each in _entries(s)]
        inner = f"{parts[0]}s" if len(set(parts)) == 1 and parts[0].isalpha() else "arguments"
        return f"{kind.__name__} of {len(parts)} {inner}" if parts else f"empty {kind.__name__}"
    if kind == "array":
        return f"array of {' × '.join(map(str, s[2]))}"
    return "Value" if kind == "value" else repr(s[2])[:40] if kind == "static" else s[2]


# --- the quick way ---------------------------------------------------------------------------------------------------

Matcher = Callable[[Any, list[float]], bool]
"""Whether the arguments fit, after adding their numbers to the list."""


def matcher(value: Any, arguments: tuple[Any, ...]) -> Optional[Matcher]:
    """A check for arguments like these, much quicker than `take_apart`. None if there is no quick one.

    It accepts Values only if they are the same ones. Its text is one condition per argument. Example: for a list of
    Values and a float,

        len(arguments) == 2 and type(arguments[0]) is k0 and arguments[0] == c0 and type(arguments[1]) is float and
        add(arguments[1]) is None
    """
    names: dict[str, Any] = {}
    texts = []
    for place, a in enumerate(arguments):
        text = _condition(value, a, f"_{place}", names)
        if text is None:
            return None
        texts.append(text)
    body = " and ".join(texts) or "True"
    start = f"{', '.join(f'_{place}' for place in range(len(arguments)))}, = arguments" if arguments else "pass"
    source = (
        f"def fits(arguments, numbers):\n    if len(arguments) != {len(arguments)}:\n        return False\n"
        f"    {start}\n    return {body}\n"
    )
    exec(source, {"LARGEST_INT": LARGEST_INT, **_CHECKS, **names}, names)  # noqa: S102  (text from this file)
    fits: Matcher = names["fits"]
    return fits


def _condition(value: Any, a: Any, name: str, names: dict[str, Any]) -> Optional[str]:
    """The condition for one argument of that name. names: objects that the text uses."""
    kind: Any = type(a)

    def refer(found: Any) -> str:
        names[f"o{len(names)}"] = found
        return f"o{len(names) - 1}"

    if kind is float:
        return f"type({name}) is float and numbers.append({name}) is None"
    if kind is int:
        return f"type({name}) is int and {-LARGEST_INT} <= {name} <= {LARGEST_INT} and numbers.append({name}) is None"
    if isinstance(a, (int, float)) and kind is not bool:
        return None
    if isinstance(a, value):
        return f"{name} is {refer(a)}" if kind is value else None  # another class may have attributes of its own
    if kind in _STATIC:
        return f"type({name}) is {refer(kind)} and {name} == {refer(a)}"
    if kind in (list, tuple):
        kinds = {type(each) for each in a}
        if kinds == {float}:
            return f"type({name}) is {kind.__name__} and of_floats({name}, {len(a)}, numbers)"
        same = _copied(value, a)
        if same is not None:
            inner = f" and kinds_of({name}) == {refer(_kinds(a))}" if kinds & {list, tuple} else ""
            return f"type({name}) is {kind.__name__} and {name} == {refer(same)}{inner}"
        if len(kinds) == 1 and kinds <= {list, tuple} and all(each and {*map(type, each)} == {float} for each in a):
            row, lengths = kinds.pop(), refer([len(each) for each in a])
            return f"type({name}) is {kind.__name__} and of_rows({name}, {{{row.__name__}}}, {lengths}, numbers)"
        return None
    if kind in (dict, array):
        return None
    if hasattr(a, "__array_interface__"):
        if a.dtype.str[1:] != "f8" or not a.ndim:
            return None
        form = refer((a.shape, a.strides, a.dtype))
        return f"type({name}) is {refer(kind)} and of_array({name}, {form}, numbers)"
    return f"{name} is {refer(a)}"


def _copied(value: Any, a: Any) -> Any:
    """A copy of a Value's container; None if it holds anything else. Equal to it while it holds the same Values."""
    if type(a) is value:
        return a if value.__eq__ is object.__eq__ else None  # type: ignore[comparison-overlap]
    if type(a) not in (list, tuple):
        return None
    parts = [_copied(value, each) for each in a]
    return None if not parts or any(part is None for part in parts) else type(a)(parts)


def _kinds(a: Any) -> list[Any]:
    """The types of the entries: a class that derives from list may equal a list."""
    return [_kinds(each) if type(each) in (list, tuple) else type(each) for each in a] + [type(a)]


_FLOAT = {float}


def _of_floats(a: Any, length: int, numbers: list[float]) -> bool:
    numbers.extend(a)
    return len(a) == length and {*map(type, a)} == _FLOAT


def _of_rows(a: Any, row_kind: Any, lengths: list[int], numbers: list[float]) -> bool:
    if {*map(type, a)} != row_kind or [*map(len, a)] != lengths:
        return False
    flat = [*itertools.chain.from_iterable(a)]
    numbers.extend(flat)
    return {*map(type, flat)} == _FLOAT


def _of_array(a: Any, form: Any, numbers: list[float]) -> bool:
    numbers.extend(a.ravel().tolist())
    return bool((a.shape, a.strides, a.dtype) == form)


_CHECKS = {"of_floats": _of_floats, "of_rows": _of_rows, "of_array": _of_array, "kinds_of": _kinds}


def numbers_of(value: Any, result: Any) -> Iterator[Any]:
    """The Values in what a function returned, in order."""
    if isinstance(result, value):
        yield result
    elif isinstance(result, (list, tuple)):
        for each in result:
            yield from numbers_of(value, each)
    elif isinstance(result, dict):
        for each in result.values():
            yield from numbers_of(value, each)
