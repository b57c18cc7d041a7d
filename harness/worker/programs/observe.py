"""A program's class -> what it calls the parts of a Value, as its objects show.

`observe` creates a few objects, multiplies two, and sees which attribute holds the number, which the gradient after
the backward pass, and so on. Example: `self.value = x; self.parents = set(parents)` gives `data="value"`,
`children="parents"` and `container="set"`. It runs in a copy of the program's process (`probe`).
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

from zoomgrad.engines.native.dress import CONTAINERS, FUNCTIONS, NUMBERS, Look, namespace

CONSTANT = (type(None), bool, int, float, str)


class Differs(Exception):
    """A class in C can't stand in for the program's. The text says why."""


def fields(v: Any) -> dict[str, Any]:
    """The attributes of an object that are not its class's."""
    slots = [name for name, item in namespace(type(v)).items() if isinstance(item, types.MemberDescriptorType)]
    return {**{name: getattr(v, name) for name in slots if hasattr(v, name)}, **getattr(v, "__dict__", {})}


def observe(own: Any) -> Look:
    """Raises Differs, and what the program's class raises."""
    a, b = own(2.5), own(-1.5)
    product, total = a * b, a + b
    if {type(product), type(total)} != {own}:
        raise Differs(f"its operators create objects of another class, {type(product).__name__}")
    data = _one(name for name, x in fields(a).items() if _is(x, 2.5) and _is(fields(product).get(name), -3.75))
    if not data:
        raise Differs("no attribute of its objects holds their number as a float")
    holders = [name for name, x in fields(product).items() if type(x).__name__ in CONTAINERS]
    holders = [name for name in holders if {*map(id, fields(product)[name])} == {id(a), id(b)}]
    children = _one(name for name in holders if not fields(a).get(name, ...))
    if not children:
        raise Differs("no attribute of a result holds its operands")
    backward, grad = _backward(own)
    rule, kind = _rule(own, children, grad)
    texts = [name for name, x in fields(product).items() if type(x) is str and fields(a)[name] == fields(b)[name]]
    ops = [name for name in texts if getattr(product, name) != getattr(total, name)]
    known = {data, children, grad, rule, *ops}
    return Look(
        data=data,
        grad=grad,
        children=children,
        container=type(getattr(product, children)).__name__,
        leaf_has_none=getattr(a, children) is None,
        backward=backward,
        rule=rule,
        rule_kind=kind,
        constants=_constants(known, [a, b, product, total]),
        heirs=_heirs(own),
        style=_style(own, data, grad, backward),
        texts={name: {"": getattr(a, name)} for name in ops},
        methods={},
        note="",
    )


def _one(names: Iterator[str]) -> str:
    candidates = list(names)
    return "data" if "data" in candidates else next(iter(candidates), "")


def _is(x: Any, number: float) -> bool:
    return isinstance(x, float) and x == number


def _backward(own: Any) -> tuple[str, str]:
    """The method of the backward pass, and the attribute of the gradient."""
    names = [name for name, item in namespace(own).items() if "back" in name and callable(item)]
    for name in sorted(names, key=lambda name: (name != "backward", name.startswith("_"))):
        a, b = own(2.5), own(-1.5)
        product = a * b
        before = fields(a)
        try:
            getattr(product, name)()
        except TypeError:  # it takes arguments
            continue
        grads = [
            key for key, x in fields(a).items() if _is(x, -1.5) and before.get(key) == 0 and fields(product)[key] == 1
        ]
        if grads:
            return name, grads[0]
    raise Differs("after the backward pass of 2.5 * -1.5, no attribute holds the gradients -1.5 and 2.5, from 0")


def _rule(own: Any, children: str, grad: str) -> tuple[str, str]:
    """Where the result of an operation keeps its gradient rule."""
    a, b = own(2.5), own(-1.5)
    product = a * b
    setattr(product, grad, 1.0)
    is_ordered = isinstance(getattr(product, children), (tuple, list))
    for name, x in fields(product).items():
        if is_ordered and isinstance(x, (tuple, list)) and [*x] == [-1.5, 2.5]:
            return name, NUMBERS
        if callable(x):
            try:
                x()
            except TypeError:
                continue
            if (getattr(a, grad), getattr(b, grad)) == (-1.5, 2.5):
                return name, FUNCTIONS
    raise Differs("its results keep their gradient rule neither in a function nor as a number for each operand")


def _constants(known: set[str], objects: list[Any]) -> dict[str, Any]:
    """Further attributes, which have the same value in each object."""
    constants = {}
    for name in {name: None for v in objects for name in fields(v) if name not in known}:
        first, *others = (fields(v).get(name, Differs) for v in objects)
        if type(first) not in CONSTANT or any(type(x) is not type(first) or x != first for x in others):
            raise Differs(f"its attribute {name} differs from object to object")
        constants[name] = first
    return constants


def _heirs(own: Any) -> bool:
    try:
        heir = type("Heir", (own,), {})
        return type(heir(2.5) + heir(1.5)) is heir
    except Exception:
        return False


def _style(own: Any, data: str, grad: str, backward: str) -> int:
    a, b = own(2.5), own(-1.5)
    total = a + b
    float_grad = type(getattr(a, grad)) is float
    getattr(total, backward)()
    float_one, is_float = (type(getattr(v, grad)) is float for v in (total, a))
    style = (type(getattr(own(3), data)) is float, float_grad, float_one, is_float and not (float_grad or float_one))
    return sum(is_so << bit for bit, is_so in enumerate(style))
