"""The arguments of a call, as a structure and numbers: calls of one structure can share one program.

The structure of `loss(model, [w, 2.0], "mean")` names the model by identity, the Value by its place among the call's
Values, and the text by itself; only the place of 2.0 is in it. NumPy's arrays add shape, strides and type.

`take_apart` makes it. `rebuilt` makes the arguments of a trace, with stand-ins for numbers. `matcher` is the quick
check whether another call has the same structure and the same Values.
"""

from __future__ import annotations

import enum
import itertools
import numbers
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple, Optional

LARGEST_INT = 2**53
"""Beyond it, doubles skip ints."""


class NotTraced(Exception):
    """A function can't be compiled. Carries the reason and the remedy."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}\n  {remedy}")
        self.reason = reason


class Signature(NamedTuple):
    """The arguments of one call, taken apart."""

    structure: Any
    values: list[Any]
    """Each Value once, in the order of the arguments."""
    numbers: list[float]
    objects: list[Any]
    """Objects that the structure names by identity."""
    arguments: tuple[Any, ...]
    named: dict[str, Any]


def take_apart(value: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Signature:
    """Flatten the arguments. Raises NotTraced for one that is neither data nor a constant."""
    signature = Signature(None, [], [], [], arguments, named)
    return signature._replace(structure=_flatten(value, (arguments, named), signature, {}))


_STATIC = {bool, str, bytes, type(None)}
_EXACT = ("f8", "i8")
"""Types of NumPy whose arithmetic is that of Python's floats and ints."""


def _flatten(value: Any, a: Any, into: Signature, places: dict[int, int]) -> Any:
    kind: Any = type(a)
    if kind is float:
        into.numbers.append(a)
        return float
    if isinstance(a, value):
        if id(a) not in places:
            places[id(a)] = len(into.values)
            into.values.append(a)
        return ("computed" if a._prev else "value", places[id(a)], kind)
    if kind in _STATIC:
        return ("static", kind, a)
    if kind in (list, tuple):
        parts = [_flatten(value, each, into, places) for each in a]
        same = parts and all(part is float for part in parts)
        return (kind, len(parts), float) if same else (kind, *parts)
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
        return int if kind is int else ("number", kind, int if is_whole else float)
    if isinstance(a, numbers.Number) and not isinstance(a, enum.Enum):
        raise NotTraced(f"an argument is a {kind.__name__}, which computes in its own way", "Convert it: float(…).")
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
        raise NotTraced(f"an argument is an array of another kind, {kind}", "Convert it: np.array(…, dtype=float).")
    flat, is_whole = a.ravel().tolist(), a.dtype.kind == "i"
    if is_whole:
        _check_exact(max(flat, key=abs, default=0))
    into.numbers.extend(flat)
    return ("array", type(a), a.shape, int if is_whole else float, a.strides)


def _object(a: Any, into: Signature) -> Any:
    kind = f"{type(a).__qualname__} of {type(a).__module__}"
    if not isinstance(a, type) and all(hasattr(type(a), name) for name in ("backward", "__add__", "__mul__")):
        remedy = "Import Value from zoomgrad: `from zoomgrad import Value`."
        raise NotTraced(f"an argument is a {kind}, and only zoomgrad's Value can be compiled", remedy)
    if hasattr(a, "__next__"):
        raise NotTraced(f"an argument is a {kind}, which can be read only once", "Pass a list: list(…).")
    if type(a).__hash__ is None:
        remedy = "Pass numbers, lists, tuples, dicts, NumPy arrays, a model, or something hashable."
        raise NotTraced(f"an argument is a {kind}, which is neither data nor a constant", remedy)
    into.objects.append(a)
    return ("object", id(a), kind)


def describe(signature: Signature) -> str:
    """A signature as a short text."""
    counts = ((len(signature.values), "Value"), (len(signature.numbers), "number"))
    texts = [f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts if count]
    constants = [repr(a)[:40] for a in (*signature.arguments, *signature.named.values()) if type(a) in _STATIC]
    return ", ".join([*texts, *(type(a).__name__ for a in signature.objects), *constants]) or "no arguments"


def values_in(value: Any, result: Any) -> Iterator[Any]:
    """The Values in what a function returned, in order."""
    if isinstance(result, value):
        yield result
    elif isinstance(result, (list, tuple, dict)):
        for each in result.values() if isinstance(result, dict) else result:
            yield from values_in(value, each)


# --- for a trace -----------------------------------------------------------------------------------------------------


class Rebuilt(NamedTuple):
    """The arguments of a trace."""

    call: tuple[tuple[Any, ...], dict[str, Any]]
    data: list[Any]
    """Stand-ins for the numbers, in order."""
    containers: list[tuple[Any, list[Any]]]
    """Each list, dict and array with its entries, to see whether the function changes it."""

    def has_changed(self) -> bool:
        """Whether a container has other entries than at first."""
        return any([*map(id, now)] != [*map(id, before)] for now, before in self.containers)


def rebuilt(signature: Signature, values: list[Any], stand_in: Callable[[float, type], Any]) -> Rebuilt:
    """The arguments with stand-ins for numbers, and these Values in place of the call's.

    stand_in: makes one of a number and its type.
    """
    made = Rebuilt(((), {}), [], [])
    objects = {id(each): each for each in signature.objects}
    remaining = iter(signature.numbers)

    def datum(kind: type) -> Any:
        made.data.append(stand_in(next(remaining), kind))
        return made.data[-1]

    def keep(container: Any, *views: Any) -> Any:
        made.containers.extend((view, list(view)) for view in (container, *views))
        return container

    def build(s: Any) -> Any:
        if s in (int, float):
            return datum(s)
        kind = s[0]
        if kind in (list, tuple):
            is_flat = s[-1] is float and type(s[1]) is int
            return keep(kind([datum(float) for _ in range(s[1])] if is_flat else map(build, s[1:])))
        if kind is dict:
            entries = dict(zip(map(build, s[1]), map(build, s[2:])))
            return keep(entries, entries.values())
        if kind == "array":
            return _rebuilt_array(s, datum, keep)
        if kind == "number":
            return datum(s[1])
        return values[s[1]] if kind in ("value", "computed") else s[2] if kind == "static" else objects[s[1]]

    return made._replace(call=build(signature.structure))


def _rebuilt_array(s: Any, datum: Callable[[type], Any], keep: Callable[[Any], Any]) -> Any:
    """An array of objects with the strides of the array, which `ravel("K")` and `ravel("A")` follow."""
    import numpy as np

    _, _, shape, of, strides = s
    ends = [step // 8 * max(0, length - 1) for step, length in zip(strides, shape)]
    memory = np.empty(1 + sum(map(abs, ends)), dtype=object)
    begin = -sum(end for end in ends if end < 0)
    filled = np.lib.stride_tricks.as_strided(memory[begin:], shape, [step // 8 * memory.itemsize for step in strides])
    for place in np.ndindex(*shape):
        filled[place] = datum(np.int64 if of is int else np.float64)
    keep(memory)
    return filled


# --- the quick way ---------------------------------------------------------------------------------------------------

Matcher = Callable[[Any, list[float]], bool]
"""Whether the arguments fit, after adding their numbers to the list."""


def matcher(value: Any, arguments: tuple[Any, ...]) -> Optional[Matcher]:
    """A check for arguments like these, much quicker than `take_apart`. None if there is no quick one.

    It accepts Values only if they are the same ones. Its text is one condition per argument. Example: for a list of
    Values and a float,

        type(_0) is list and _0 == o0 and type(_1) is float and numbers.append(_1) is None
    """
    names: dict[str, Any] = {"of_floats": _of_floats, "of_rows": _of_rows, "of_array": _of_array}
    conditions = [_condition(value, a, f"_{place}", names) for place, a in enumerate(arguments)]
    if None in conditions:
        return None
    unpack = f"{', '.join(f'_{place}' for place in range(len(arguments)))}, = arguments" if arguments else "pass"
    source = (
        f"def fits(arguments, numbers):\n    if len(arguments) != {len(arguments)}:\n        return False\n"
        f"    {unpack}\n    return {' and '.join(map(str, conditions)) or 'True'}\n"
    )
    exec(source, names)  # noqa: S102  (text from this file)
    fits: Matcher = names["fits"]
    return fits


def _condition(value: Any, a: Any, name: str, names: dict[str, Any]) -> Optional[str]:
    """The condition for one argument of that name. names: objects that the text uses."""
    kind: Any = type(a)

    def refer(used: Any) -> str:
        names[f"o{len(names)}"] = used
        return f"o{len(names) - 1}"

    has_type = f"type({name}) is {refer(kind)} and"
    if kind is float:
        return f"{has_type} numbers.append({name}) is None"
    if kind is int:
        return f"{has_type} {-LARGEST_INT} <= {name} <= {LARGEST_INT} and numbers.append({name}) is None"
    if kind in _STATIC:
        return f"{has_type} {name} == {refer(a)}"
    if kind in (list, tuple):
        kinds = {type(each) for each in a}
        if kinds == {float}:
            return f"{has_type} of_floats({name}, {len(a)}, numbers)"
        if len(kinds) == 1 and kinds <= {list, tuple} and all(each and {*map(type, each)} == {float} for each in a):
            return f"{has_type} of_rows({name}, {refer(kinds)}, {[*map(len, a)]}, numbers)"
        same = _copied(value, a)
        return None if same is None else f"{has_type} {name} == {refer(same)}"
    if hasattr(a, "__array_interface__"):
        form = refer((a.shape, a.strides, a.dtype))
        return f"{has_type} of_array({name}, {form}, numbers)" if a.dtype.str[1:] == "f8" and a.ndim else None
    return None if isinstance(a, (int, float, dict)) else f"{name} is {refer(a)}"


def _copied(value: Any, a: Any) -> Any:
    """A copy of a Value's container; None if it holds anything else. Equal to it while it holds the same Values."""
    if isinstance(a, value):
        return a if type(a).__eq__ is object.__eq__ else None  # type: ignore[comparison-overlap]
    parts = [_copied(value, each) for each in a] if type(a) in (list, tuple) else []
    return None if not parts or any(part is None for part in parts) else type(a)(parts)


_FLOAT = {float}


def _of_floats(a: Any, length: int, numbers: list[float]) -> bool:
    numbers.extend(a)
    return len(a) == length and {*map(type, a)} == _FLOAT


def _of_rows(a: Any, row_kind: Any, lengths: list[int], numbers: list[float]) -> bool:
    if {*map(type, a)} != row_kind or [*map(len, a)] != lengths:
        return False
    return _of_floats([*itertools.chain.from_iterable(a)], sum(lengths), numbers)


def _of_array(a: Any, form: Any, numbers: list[float]) -> bool:
    numbers.extend(a.ravel().tolist())
    return bool((a.shape, a.strides, a.dtype) == form)
