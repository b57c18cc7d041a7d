"""What the extension type leaves to Python: numbers that are neither ints nor floats, and copies."""

from __future__ import annotations

import copy
import operator
from array import array
from typing import Any


def convert(source: Any, keeps_objects: bool) -> Any:
    """What C computes with in place of something else: an int, a float, or NumPy's float64.

    What stays an object comes in a tuple: a complex number, and NumPy's other numbers, because the bits of x**2 differ,
    and arrays of one without dimensions. keeps_objects: anything does, as in a program's own class. Raises TypeError.
    """
    is_numpy = type(source).__module__ == "numpy" and source.shape == () and source.dtype.kind in "biufc"
    if is_numpy and isinstance(source, float):
        return source
    if is_numpy or keeps_objects or type(source) is complex:
        return (source,)
    try:
        # An array of doubles refuses text, which float() converts.
        return operator.index(source) if hasattr(type(source), "__index__") else array("d", [source])[0]
    except TypeError:
        raise TypeError(
            f"a Value holds a number, not {source!r}\n"
            "  Convert it first, or use an engine written in Python, such as `hoisted`."
        ) from None


def parts(v: Any) -> tuple[Any, ...]:
    """What a copy is made of: `rebuild` and its arguments, then the program's own attributes."""
    if v._has_own_backward:
        raise TypeError(f"{v!r} has its own backward function, which can't be copied")
    *stored, attributes = v._parts()
    return rebuild, (type(v), *stored), attributes


def rebuild(cls: Any, *stored: Any) -> Any:
    """The Value of that class with these parts."""
    v = cls.__new__(cls)
    v._restore(*stored)
    return v


def deep_copy(root: Any, memo: dict[int, Any]) -> Any:
    """A copy of a graph. Operands are copied first, so that a long chain needs no recursion."""
    for v in root._topo():
        if id(v) not in memo:
            make, stored, attributes = v.__reduce__()
            memo[id(v)] = make(*copy.deepcopy(stored, memo))  # the operands are in the memo
            if attributes:
                memo[id(v)].__dict__.update(copy.deepcopy(attributes, memo))
    return memo[id(root)]
