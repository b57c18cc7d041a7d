"""The arguments of a call as a structure and numbers: calls of one structure can share one program.

The structure of `loss(model, [w, 2.0], "mean")` names the model by identity, the Value by its place among the call's
Values, and the text by itself; only the place of 2.0 is in it. NumPy's arrays add shape, strides and type.

`take_apart` makes it, also of what a function returns, and `put_together` reverses it: with stand-ins for the numbers,
it makes the arguments of a trace, and with results for the Values, it makes what a compiled call returns.
"""

from __future__ import annotations

import enum
import numbers
from typing import Any, Callable, NamedTuple

LARGEST_INT = 2**53
"""Beyond it, doubles skip ints."""


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
    is_scalar = kind.__module__ == "numpy" and getattr(getattr(a, "dtype", None), "str", "")[1:] in _EXACT
    if kind is int or is_scalar:
        is_whole = kind is int or a.dtype.kind == "i"
        _check_exact(a if is_whole else 0)
        into.numbers.append(float(a))
        return int if kind is int else ("number", kind)
    if isinstance(a, numbers.Number) and not isinstance(a, enum.Enum):
        raise NotTraced(
            f"an argument or result is a {kind.__name__}, which computes in its own way", "Convert it: float(…)."
        )
    return _object(a, into)


def _check_exact(number: int) -> None:
    if abs(int(number)) > LARGEST_INT:
        raise NotTraced(f"the int {number} is not exact as a double", f"Convert it: float({number}).")


def _key(value: Any, key: Any, into: Signature, places: dict[int, int]) -> Any:
    """The structure of a dict's key. Keys may be equal and differ: 1 and True, 0.0 and -0.0."""
    kind = type(key)
    if kind is tuple:
        return (kind, *[_key(value, each, into, places) for each in key])
    if kind in (int, float):
        return ("static", kind, key, repr(key))
    return _flatten(value, key, into, places) if kind in _STATIC or isinstance(key, value) else _object(key, into)


def _array(a: Any, into: Signature) -> Any:
    if type(a).__module__ != "numpy" or a.dtype.str[1:] not in _EXACT or any(step % 8 for step in a.strides):
        kind = f"{type(a).__name__} of {a.dtype}"
        raise NotTraced(f"an argument or result is a {kind}", "Convert it: np.array(…, dtype=float).")
    flat, is_whole = a.ravel().tolist(), a.dtype.kind == "i"
    if is_whole:
        _check_exact(max(flat, key=abs, default=0))
    into.numbers.extend(flat)
    return ("array", type(a), a.shape, int if is_whole else float, a.strides)


def _object(a: Any, into: Signature) -> Any:
    kind: Any = type(a)
    problem = ""
    if hasattr(kind, "backward") and hasattr(kind, "__add__") and not isinstance(a, type):
        problem = "and only zoomgrad's Value can be compiled"
        remedy = "Import Value from zoomgrad: `from zoomgrad import Value`."
    elif hasattr(kind, "__next__"):
        problem, remedy = "which can be read only once", "Pass a list: list(…)."
    elif kind.__hash__ is None:
        problem = "which is neither data nor a constant"
        remedy = "Pass numbers, lists, tuples, dicts, NumPy arrays, a model, or something hashable."
    if problem:
        raise NotTraced(f"an argument or result is a {kind.__qualname__} of {kind.__module__}, {problem}", remedy)
    into.objects.append(a)
    return ("object", id(a))


def describe(signature: Signature) -> str:
    """The signature of a call, a tuple and a dict, as a short text."""
    counts = ((len(signature.values), "Value"), (len(signature.numbers), "number"))
    texts = [f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts if count]
    parts = [s for part in signature.structure[1:] for s in part[1:] if type(s) is tuple]
    constants = [repr(s[2])[:40] for s in parts if s[:1] == ("static",)]
    return ", ".join([*texts, *(type(a).__name__ for a in signature.objects), *constants]) or "no arguments"


def put_together(
    signature: Signature,
    values: list[Any],
    number_of: Callable[[float, type], Any],
    keep: Callable[..., Any] = lambda container, *_: container,
) -> Any:
    """What was taken apart, with these Values in place of the original ones.

    number_of: makes a number, or what stands for it, of a float and its type. keep: sees each new container, and also
    the values of a dict. It returns the container.
    """
    objects = {id(each): each for each in signature.objects}
    remaining = iter(signature.numbers)

    def build(s: Any) -> Any:
        if s in (int, float):
            return number_of(next(remaining), s)
        kind = s[0]
        if kind == "floats":
            return keep(s[1]([number_of(next(remaining), float) for _ in range(s[2])]))
        if kind in (list, tuple):
            return keep(kind(map(build, s[1:])))
        if kind is dict:
            entries = dict(zip(map(build, s[1]), map(build, s[2:])))
            return keep(entries, entries.values())
        if kind == "array":
            return _array_of(s, lambda kind: number_of(next(remaining), kind), keep)
        if kind == "number":
            return number_of(next(remaining), s[1])
        return values[s[1]] if kind in ("value", "computed") else s[2] if kind == "static" else objects[s[1]]

    return build(signature.structure)


def _array_of(s: Any, number_of: Callable[[type], Any], keep: Callable[..., Any]) -> Any:
    """An array of objects with the strides of the array, which `ravel("K")` and `ravel("A")` follow."""
    import numpy as np

    _, _, shape, of, strides = s
    kind = np.int64 if of is int else np.float64
    ends = [step // 8 * max(0, length - 1) for step, length in zip(strides, shape)]
    memory = np.empty(1 + sum(map(abs, ends)), dtype=object)
    begin = -sum(end for end in ends if end < 0)
    filled = np.lib.stride_tricks.as_strided(memory[begin:], shape, [step // 8 * memory.itemsize for step in strides])
    for place in np.ndindex(*shape):
        filled[place] = number_of(kind)
    keep(memory)
    return filled.astype(kind) if {*map(type, filled.flat)} == {kind} else filled
