"""How a Value stands in for a program's own class: constructor arguments and attributes under other names.

    def __init__(self, value, kind="", parents=()):
        self.value, self.kind, self.children = value, kind, set(parents)

gives the parameters value -> data, kind -> _op, parents -> _prev, and the attributes value -> data, kind -> _op,
children -> _prev. Nothing changes for a class with micrograd's names.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Optional

STANDARD = ("data", "_children", "_op", "label")
ROLES = ("data", "_prev", "_op", "label", "grad")
"""Attributes of a Value. The first four are its constructor's parameters, in order."""


class Parameter(NamedTuple):
    """A parameter of the class's constructor."""

    name: str
    role: str  # an attribute of a Value, or empty if it has nothing like it
    default: Any


class Names(NamedTuple):
    """What a class calls the parameters and attributes of a Value."""

    parameters: tuple[Parameter, ...] = ()  # empty: as in micrograd
    attributes: Mapping[str, str] = {}  # those with another name than the Value's


def names_of(node: ast.ClassDef) -> Names:
    """Read a class's constructor."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            parameters = tuple(_parameters(item.args))
            attributes = dict(_attributes(item, parameters))
            known = all(p.name in STANDARD for p in parameters) and [p.name for p in parameters] == [
                *STANDARD[: len(parameters)]
            ]
            plain = known and all(p.default in (None, "", ()) for p in parameters)
            return Names(() if plain else parameters, attributes)
    return Names()


def _parameters(arguments: ast.arguments) -> Iterator[Parameter]:
    named = [*arguments.posonlyargs, *arguments.args][1:]
    missing: list[Optional[ast.expr]] = [None] * (len(named) - len(arguments.defaults))
    defaults = [*missing, *arguments.defaults][-len(named) :] if named else []
    taken: set[str] = set()
    for one, default in zip([*named, *arguments.kwonlyargs], [*defaults, *arguments.kw_defaults]):
        role = "" if default is None and taken else _role(one.arg, default, first=not taken)
        role = "" if role in taken else role
        taken.add(role)
        yield Parameter(one.arg, role, _literal(default))


def _role(name: str, default: Optional[ast.expr], *, first: bool) -> str:
    if first:
        return "data"
    if isinstance(_literal(default), tuple) or any(part in name for part in ("prev", "child", "parent")):
        return "_prev" if "op" not in name else "_op"
    for part, role in (("op", "_op"), ("label", "label"), ("name", "label")):
        if part in name:
            return role
    if isinstance(_literal(default), str):
        return "_op"
    return "grad" if name == "grad" else ""


def _literal(default: Optional[ast.expr]) -> Any:
    """A default's value: an empty collection as (), and None if it is not a constant."""
    if isinstance(default, ast.Constant) and isinstance(default.value, (str, int, float)):
        return default.value
    if isinstance(default, (ast.Tuple, ast.List)) and not default.elts:
        return ()
    return () if default is not None and ast.unparse(default) in ("set()", "tuple()", "list()") else None


def _attributes(init: ast.FunctionDef, parameters: tuple[Parameter, ...]) -> Iterator[tuple[str, str]]:
    """The class's attributes that a Value has under another name."""
    role_of = {p.name: p.role for p in parameters if p.role}
    for target, value in _assignments(init):
        if not isinstance(target, ast.Attribute) or ast.unparse(target.value) != "self":
            continue
        used = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)} & role_of.keys()
        role = role_of[used.pop()] if len(used) == 1 else ""
        if target.attr in ("gradient", "_grad") and not role:
            role = "grad"
        if role and target.attr not in (*ROLES, "_backward"):
            yield target.attr, role


def _assignments(init: ast.FunctionDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets and values; `a, b = c, d` counts as two."""
    for node in ast.walk(init):
        if isinstance(node, ast.AnnAssign) and node.value:
            yield node.target, node.value
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    yield from zip(target.elts, node.value.elts)
                else:
                    yield target, node.value


def standing_in(names: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Return a decorator that gives a subclass of Value the constructor and the attributes of these names."""
    parameters = tuple(Parameter(*parameter) for parameter in names[0])
    attributes = dict(names[1])

    def decorate(subclass: Any) -> Any:
        base = subclass.__mro__[1]
        usual = [p.role for p in parameters[1:3]] == ["_prev", "_op"]
        labelled = any(p.role == "label" and p.default for p in parameters)

        def construct(self: Any, *positional: Any, **named: Any) -> None:
            if len(positional) == 3 and positional[1].__class__ is tuple and usual and not named and not labelled:
                base.__init__(self, *positional)  # what follows would do the same, but every result comes here
                return
            given = _given(parameters, positional, named)
            grad = given.pop("grad", None)
            base.__init__(self, *(given[role] for role in ROLES[:4]))
            if grad:
                self.grad = grad

        if parameters:
            subclass.__init__ = construct
        for own, role in attributes.items():
            if not hasattr(subclass, own):
                setattr(subclass, own, _renamed(role))
        return subclass

    return decorate


def _renamed(role: str) -> property:
    return property(lambda v: getattr(v, role), lambda v, found: setattr(v, role, found))


def _given(parameters: tuple[Parameter, ...], positional: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Role -> argument. Operators call the constructor as micrograd does, programs as their class is written."""
    names = {p.name: p.role for p in parameters}
    given: dict[str, Any] = {"_prev": (), "_op": "", "label": ""}
    given.update((p.role, p.default) for p in parameters if p.role and p.default is not None)
    order = [p.name for p in parameters]
    if len(positional) > 1 and isinstance(positional[1], tuple) and names[order[1]] != "_prev":
        given.update(zip(ROLES, positional))
    else:
        if len(positional) > len(order):
            raise TypeError(f"Value takes {len(order)} arguments, but {len(positional)} were given")
        given.update((names[name], argument) for name, argument in zip(order, positional) if names[name])
    for name, argument in named.items():
        if name not in names:
            raise TypeError(f"Value got an unexpected keyword argument {name!r}")
        if names[name]:
            given[names[name]] = argument
    if "data" not in given:
        raise TypeError("Value needs a number")
    for role, none in (("_prev", ()), ("_op", ""), ("label", "")):
        given[role] = none if given[role] is None else given[role]
    given["_prev"] = tuple(given["_prev"])
    return given
