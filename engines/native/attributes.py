"""What the extension type leaves to Python: other constructors, gradients that are not numbers, names, and copies."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from zoomgrad.engines.native.ops_in_c import ALL, in_python
from zoomgrad.engines.value_base import Derived


def construct(v: Any, data: Any, _children: Any = (), _op: str = "", label: str = "") -> None:
    """The constructor. C handles a single float or int of a new Value itself."""
    del v._backward
    v._restore(data, 0, _children, _op, None, False)
    if label or v.label:
        v.label = label


construct.__qualname__ = "Value.__init__"  # in error messages


_CONTRIBUTIONS = {op.name: in_python(*op.contributions) for op in ALL}


def contributions(name: str, operands: Sequence[Any], constant: Any, out: Any, g: Any) -> tuple[Any, ...]:
    """What an operation of that name adds to the gradient of each operand. operands: their numbers."""
    terms = _CONTRIBUTIONS[name](operands[0], operands[-1], constant, out, g)
    return terms if len(operands) == 2 else (terms,)


def contribute(value: Any, v: Any) -> None:
    """Add a Value's contributions where C can't. value: the class Value, because another may have other names."""
    data, grad, operands, name, constant, *_ = value._parts(v)
    terms = contributions(name, [value.data.__get__(operand) for operand in operands], constant, data, grad)
    for operand, term in zip(operands, terms):
        if name != "max" or term is grad:  # the operand that is not selected gets nothing, not even 0
            total = value.grad.__get__(operand)
            total += term  # which changes an array or a list in place
            value.grad.__set__(operand, total)


def text_of(v: Any) -> str:
    """`_op`: the name of the operation, with the constant of a power."""
    _, _, _, name, constant, *_ = v._parts()
    return str(name) if constant is None else f"{name}{constant}"


def rename(v: Any, name: Any) -> None:
    """Set `_op`. A name of the op table says how the Value is computed, so it stays."""
    data, grad, operands, _, _, is_op, _ = v._parts()
    if is_op:
        raise AttributeError(f"_op of {v!r} says how it is computed, so it can't be changed\n  Use `label` for a name.")
    v._restore(data, grad, operands, name, None, False)


def parts(v: Any) -> tuple[Any, ...]:
    """What a copy is made of: `rebuild` and its arguments, then the program's own attributes."""
    if v._backward != v._contribute:
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


ATTRIBUTES = {
    "_op": property(text_of, rename),
    "_name": property(lambda v: v._parts()[3]),
    "_constant": property(lambda v: v._parts()[4]),
    "__repr__": Derived.__repr__,
    "__reduce__": parts,
    "__deepcopy__": deep_copy,
    # Defaults: a Value keeps other ones in its dict.
    "label": "",
    "_row": -1,
}
