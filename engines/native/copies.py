"""Copies of the extension type, as methods that `build` adds to it."""

from __future__ import annotations

import copy
from typing import Any


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
