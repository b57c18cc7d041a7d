"""The arguments of a call as a structure and numbers: calls of one structure can share one program.

The structure of `loss(model, [w, 2.0], "mean")` names the model by identity, the Value by its place among the call's
Values, and the text by itself; only the place of 2.0 is in it. NumPy's arrays add shape, strides and type.

`take_apart` makes it, also of what a function returns, and `put_together` reverses it: with stand-ins for the numbers,
it makes the arguments of a trace, and with results for the Values, it makes what a compiled call returns.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple


class NotTraced(Exception):
    """A function can't be compiled. Carries the reason and the remedy."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}\n  {remedy}")
        self.reason = reason


class Signature(NamedTuple):
    """Something taken apart: the arguments of a call, or what it returned."""

    structure: Any
    values: list[Any]
    """Each Value once, in order."""
    numbers: list[float]
    objects: list[Any]
    """Objects that the structure names by identity."""


def take_apart(value: Any, whole: Any) -> Signature:
    """Flatten tuples, lists, dicts and arrays. Raises NotTraced for a part that is neither data nor a constant."""
    parts = Signature(None, [], [], [])
    try:
        return Signature(_flatten(value, whole, parts, {}), parts.values, parts.numbers, parts.objects)
    except NotTraced:
        raise
    except Exception as error:  # such as a list that holds itself, or an object that answers every question
        kind = type(error).__name__
        raise NotTraced(f"an argument or result can't be taken apart ({kind})", "Pass numbers and lists.") from None


_STATIC = {bool, str, bytes, type(None)}
WORD = 8
"""Bytes of a double, and of an object of an array."""
_EXACT = ("f8", "i8")
"""Types of NumPy whose arithmetic is that of Python's floats and ints."""


def _flatten(value: Any, a: Any, into: Signature, places: dict[int, int]) -> Any:
    kind: Any = type(a)
    if kind is float:
        into.numbers.append(a)
        return float
    if kind in (list, tuple):
        if a and type(a[0]) is float and {*map(type, a)} == {float}:  # the usual row of data, and much quicker
            into.numbers.extend(a)
            return ("floats", kind, len(a))
        return (kind, *[_flatten(value, each, into, places) for each in a])
    if isinstance(a, value):
        if id(a) not in places:
            places[id(a)] = len(into.values)
            into.values.append(a)
        return ("computed" if a._prev else "value", places[id(a)], kind)
    if kind in _STATIC:
        return ("static", kind, a)
    if kind is dict:
        keys = tuple(_key(value, each, into, places) for each in a)
        return (kind, keys, *[_flatten(value, each, into, places) for each in a.values()])
    if hasattr(a, "__array_interface__") and getattr(a, "ndim", 0) > 0:
        return _array(a, into)
    if kind is int or (kind.__module__ == "numpy" and getattr(getattr(a, "dtype", None), "str", "")[1:] in _EXACT):
        into.numbers.append(_double(a if kind is int else a.item()))
        return kind
    if isinstance(a, numbers.Number):
        reason = f"an argument or result is a {kind.__name__}, which computes in its own way"
        raise NotTraced(reason, "Convert it: float(…).")
    return _object(a, into)


def _double(number: Any) -> float:
    if float(number) != number and type(number) is int:
        raise NotTraced(f"the int {number} is not exact as a double", f"Convert it: float({number}).")
    return float(number)


def _key(value: Any, key: Any, into: Signature, places: dict[int, int]) -> Any:
    """The structure of a dict's key. Keys may be equal and differ: 1 and True, 0.0 and -0.0."""
    kind = type(key)
    if kind is tuple:
        return (kind, *[_key(value, each, into, places) for each in key])
    if kind in (int, float):
        return ("static", kind, key, repr(key))
    return _flatten(value, key, into, places) if kind in _STATIC or isinstance(key, value) else _object(key, into)


def _array(a: Any, into: Signature) -> Any:
    if type(a).__module__ != "numpy" or a.dtype.str[1:] not in _EXACT or any(step % WORD for step in a.strides):
        kind = f"{type(a).__name__} of {a.dtype}"
        raise NotTraced(f"an argument or result is a {kind}", "Convert it: np.array(…, dtype=float).")
    flat = a.ravel().tolist()
    into.numbers.extend(flat if a.dtype.kind == "f" else map(_double, flat))
    return ("array", type(a), a.shape, a.dtype.type, a.strides)


def _object(a: Any, into: Signature) -> Any:
    kind: Any = type(a)
    name = f"an argument or result is a {kind.__qualname__} of {kind.__module__}"
    if hasattr(kind, "backward") and hasattr(kind, "__add__") and not isinstance(a, type):
        remedy = "Import Value from zoomgrad: `from zoomgrad import Value`."
        raise NotTraced(f"{name}, and only zoomgrad's Value can be compiled", remedy)
    if hasattr(kind, "__next__") or kind.__hash__ is None:
        remedy = "Pass numbers, lists, tuples, dicts, NumPy arrays, a model, or something hashable."
        raise NotTraced(f"{name}, which is neither data nor a constant", remedy)
    into.objects.append(a)
    return ("object", id(a))


def put_together(signature: Signature, values: list[Any], number_of: Callable[[float, Any], Any]) -> Any:
    """What was taken apart, with these Values in place of the original ones.

    number_of: makes a number, or what stands for it, of a float and its type.
    """
    objects = {id(each): each for each in signature.objects}
    remaining = iter(signature.numbers)

    def build(s: Any) -> Any:
        if isinstance(s, type):
            return number_of(next(remaining), s)
        kind = s[0]
        if kind == "floats":
            return s[1]([number_of(next(remaining), float) for _ in range(s[2])])
        if kind in (list, tuple):
            return kind(map(build, s[1:]))
        if kind is dict:
            return dict(zip(map(build, s[1]), map(build, s[2:])))
        if kind == "array":
            return _array_of(s, number_of, remaining)
        return values[s[1]] if kind in ("value", "computed") else s[2] if kind == "static" else objects[s[1]]

    return build(signature.structure)


def _array_of(s: Any, number_of: Callable[[float, Any], Any], remaining: Iterator[float]) -> Any:
    """An array of objects with the strides of the array, which `ravel("K")` and `ravel("A")` follow."""
    import numpy as np

    _, _, shape, kind, strides = s
    ends = [step // WORD * max(0, length - 1) for step, length in zip(strides, shape)]
    memory = np.empty(1 + sum(map(abs, ends)), dtype=object)
    array = np.lib.stride_tricks.as_strided(memory[-sum(end for end in ends if end < 0) :], shape, strides)
    for place in np.ndindex(*shape):
        array[place] = number_of(next(remaining), kind)
    return array.astype(kind) if {*map(type, array.flat)} <= {kind} else array
