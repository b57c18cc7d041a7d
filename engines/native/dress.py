"""A program's class and its look -> a class in C that stands in for it.

Operators, activations and the backward pass are the type's own, in C. Everything else stays the program's: other
methods, how its objects print, its names for the parts of a Value, and its constructor, which runs for objects that the
program creates with more than a number.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Any, NamedTuple

from zoomgrad.engines.graph.ops import OPS
from zoomgrad.engines.native.attributes import contributions, text_of

FUNCTIONS, NUMBERS = "functions", "numbers"
"""Where an operation keeps its gradient rule: in a function of the result, or in a number for each operand."""
CONTAINERS = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}
OF_A_CLASS = ("__dict__", "__weakref__", "__slots__", "__init__")


class Look(NamedTuple):
    """What a class in C needs to stand in for a program's class. Attributes are empty if there is none."""

    data: str
    grad: str
    children: str
    container: str  # the type of `children`
    leaf_has_none: bool  # whether `children` is None where there are no operands
    backward: str  # the method
    rule: str
    rule_kind: str  # FUNCTIONS or NUMBERS
    constants: dict[str, Any]  # further attributes with the same value in each object
    heirs: bool  # whether operators create the subclass of their operand
    style: int  # bits that say which of its numbers are floats from the start: `FLOAT_DATA` and the like of `value.c`
    texts: dict[str, dict[str, Any]]  # attribute such as `_op` -> name of an operation in C -> its value, if another
    methods: dict[str, str]  # operation -> the method in C that replaces it; empty if the program's own stays
    note: str  # how the operations that stay differ


def namespace(own: type) -> dict[str, Any]:
    """All attributes of a class and its bases, without those of `object`."""
    return {name: item for cls in reversed(own.__mro__[:-1]) for name, item in vars(cls).items()}


def dress(own: Any, look: Look, value: Any) -> Any:
    """value: the class Value in C."""
    names = namespace(own)
    cls = value._dress(names["__init__"], look.heirs, look.style)
    ours = vars(value)
    # Reading an operation that the program's class lacks raises AttributeError.
    parts: dict[str, Any] = {op.name.lower(): property() for op in OPS.values() if op.name.isalpha()}
    parts.update({name: item for name, item in names.items() if not isinstance(item, types.MemberDescriptorType)})
    parts.update(look.constants)
    parts.update({name: ours.get(method) for name, method in look.methods.items() if method})
    parts.update({look.backward: ours["backward"], look.data: ours["data"], look.grad: ours["grad"]})
    parts[look.children] = _children(look, value)
    parts[look.rule] = _numbers(value) if look.rule_kind == NUMBERS else _function(value, names["__init__"])
    parts.update({name: _text(name, texts) for name, texts in look.texts.items()})
    for name, part in parts.items():
        if name not in OF_A_CLASS and name != look.methods.get(name):
            setattr(cls, name, part)
    cls.__name__, cls.__qualname__ = own.__name__, own.__qualname__
    return cls


def let_find(own: Any, cls: Any, *names: str) -> None:
    """Let the methods of a class find another class in these variables around them; `super()` uses `__class__`."""
    for item in namespace(own).values():
        code = getattr(item, "__code__", None)
        for variable, cell in zip(getattr(code, "co_freevars", ()), getattr(item, "__closure__", None) or ()):
            if variable in names:
                cell.cell_contents = cls


def _children(look: Look, value: Any) -> Any:
    descriptor = vars(value)["_prev"]
    if look.container == "tuple" and not look.leaf_has_none:
        return descriptor
    kind = CONTAINERS[look.container]

    def get(v: Any) -> Any:
        operands = descriptor.__get__(v)
        return kind(operands) if operands or not look.leaf_has_none else None

    return property(get, lambda v, operands: descriptor.__set__(v, () if operands is None else operands))


def _function(value: Any, init: Any) -> property:
    """A function of a constructor does nothing, so it is not kept: a leaf with a function takes the slow way."""
    descriptor = vars(value)["_backward"]
    nothing = {code for code in init.__code__.co_consts if isinstance(code, types.CodeType)}

    def put(v: Any, function: Any) -> None:
        if function is not None and getattr(function, "__code__", None) not in nothing:
            descriptor.__set__(v, function)

    return property(descriptor.__get__, put)


def _numbers(value: Any) -> property:
    """A number for each operand, the derivative by it."""
    descriptor = vars(value)["_backward"]

    def get(v: Any) -> Any:
        function = descriptor.__get__(v)
        if getattr(function, "func", None) is _send:
            return function.args[1]
        # A result in C doesn't store its derivatives.
        return contributions(v._name, [operand.data for operand in v._prev], v._constant, v.data, 1) if v._name else ()

    def put(v: Any, numbers: Any) -> None:
        if len(numbers):
            descriptor.__set__(v, functools.partial(_send, v, numbers))

    return property(get, put)


def _send(v: Any, numbers: Any) -> None:
    for operand, derivative in zip(v._prev, numbers):
        operand.grad += derivative * v.grad


def _text(name: str, texts: Mapping[str, Any]) -> property:
    """What the program calls an operation, unless it has set the attribute."""

    def get(v: Any) -> Any:
        return v.__dict__[name] if name in v.__dict__ else texts.get(v._name, text_of(v))

    return property(get, lambda v, text: v.__dict__.__setitem__(name, text))
