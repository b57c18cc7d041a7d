"""How a Value stands in for a program's own class: constructor arguments and attributes under other names.

    def __init__(self, value, kind="", parents=()):
        self.value, self.kind, self.children = value, kind, set(parents)

gives the parameters value -> data, kind -> _op, parents -> _prev, and the attributes value -> data, kind -> _op,
children -> _prev. Nothing changes for a class with micrograd's names.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from numbers import Number
from typing import Any, NamedTuple, Optional

from zoomgrad.engines.graph.ops import OPS
from zoomgrad.harness.worker.programs.own_modules import WrongScript

STANDARD = ("data", "_children", "_op", "label")
ROLES = ("data", "_prev", "_op", "label", "grad")
"""Attributes of a Value. The first four are its constructor's parameters, in order."""


ARITY = {op.name: op.arity for op in OPS.values()}


class Parameter(NamedTuple):
    """A parameter of the class's constructor."""

    name: str
    role: str  # an attribute of a Value, or empty if it has nothing like it
    default: Any


class Names(NamedTuple):
    """What a class calls the parameters and attributes of a Value."""

    parameters: tuple[Parameter, ...] = ()  # empty: as in micrograd
    attributes: Mapping[str, str] = {}  # those with another name than the Value's
    rules: bool = False  # whether its operations keep their gradient rules elsewhere than in a result's `_backward`


def names_of(node: ast.ClassDef) -> Names:
    """Read a class's constructor, and where its operations keep their gradient rules."""
    rules = not any(map(_sets_backward, ast.walk(node)))
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            parameters = tuple(_parameters(item.args))
            attributes = dict(_attributes(item, parameters))
            known = all(p.name in STANDARD for p in parameters) and [p.name for p in parameters] == [
                *STANDARD[: len(parameters)]
            ]
            plain = known and all(p.default in (None, "", ()) for p in parameters)
            return Names(() if plain and not rules else parameters, attributes, rules)
    return Names()


def _sets_backward(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and node.attr == "_backward"
        and ast.unparse(node.value) != "self"
    )


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
    is_op = any(word.startswith("op") for word in name.split("_"))
    if isinstance(_literal(default), tuple) or any(part in name for part in ("prev", "child", "parent")):
        return "_op" if is_op else "_prev"
    if is_op:
        return "_op"
    if "label" in name or "name" in name:
        return "label"
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
    attributes, rules = dict(names[1]), names[2]

    def decorate(subclass: Any) -> Any:
        base = subclass.__mro__[1]
        label = next((p.default for p in parameters if p.role == "label" and p.default), "")

        def construct(self: Any, *positional: Any, **named: Any) -> None:
            if len(positional) == 3 and positional[2].__class__ is str and _is_ours(*positional[1:]):
                base.__init__(self, *positional, label)  # called by a Value's own operator, as micrograd does
                return
            given, others = _given(parameters, positional, named)
            grad = given.pop("grad", None)
            base.__init__(self, *(given[role] for role in ROLES[:4]))
            if grad:
                self.grad = grad
            used = [_use(self, name, argument, given["_prev"]) for name, argument in others.items()]
            if rules and given["_prev"] and not any(used):
                raise _lost("this operation has a gradient rule that a Value can't use")

        if parameters:
            subclass.__init__ = construct
        for own, role in attributes.items():
            if not hasattr(subclass, own):
                setattr(subclass, own, _renamed(role))
        return subclass

    return decorate


def _is_ours(operands: Any, op: str) -> bool:
    """Whether a Value's own operators name a result of these operands so."""
    return operands.__class__ is tuple and len(operands) == (ARITY.get(op) or op.startswith("**"))


def _lost(problem: str) -> WrongScript:
    """Names the innermost line of the program."""
    frame: Any = sys._getframe(1)
    while frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return WrongScript(
        f"{frame.f_code.co_filename}:{frame.f_lineno}: {problem}, so the gradient would be lost\n"
        "  Set `_backward` of the result to a function without arguments, or run the program without --replace."
    )


def _renamed(role: str) -> property:
    return property(lambda v: getattr(v, role), lambda v, found: setattr(v, role, found))


def _use(v: Any, name: str, argument: Any, operands: tuple[Any, ...]) -> bool:
    """Use an argument that a Value has no role for: a number for each operand is the derivative by it.

    Returns False for plain settings, such as `requires_grad=False`, which are left out. Raises WrongScript for anything
    else, such as a backward function, because the gradient would be lost.
    """
    if argument is None or isinstance(argument, (str, bytes, Number)):
        return False
    if isinstance(argument, (tuple, list, dict, set, frozenset)) and not argument:
        return False
    numbers = isinstance(argument, (tuple, list)) and all(isinstance(each, Number) for each in argument)
    if not numbers or len(argument) != len(operands):
        raise _lost(f"a Value has no use for the argument {name!r}")

    def backward() -> None:
        for operand, derivative in zip(operands, argument):
            operand.grad += derivative * v.grad

    v._backward = backward
    return True


def _given(
    parameters: tuple[Parameter, ...], positional: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Role -> argument, and parameter -> argument for those without a role."""
    names = {p.name: p.role for p in parameters}
    given: dict[str, Any] = {"_prev": (), "_op": "", "label": ""}
    given.update((p.role, p.default) for p in parameters if p.role and p.default is not None)
    others: dict[str, Any] = {}
    if len(positional) > len(names):
        raise TypeError(f"Value takes {len(names)} arguments, but {len(positional)} were given")
    for name, argument in [*zip(names, positional), *named.items()]:
        if name not in names:
            raise TypeError(f"Value got an unexpected keyword argument {name!r}")
        if not names[name] or (names[name] in ("_op", "label") and not isinstance(argument, (str, type(None)))):
            others[name] = argument
        else:
            given[names[name]] = argument
    if "data" not in given:
        raise TypeError("Value needs a number")
    for role, none in (("_prev", ()), ("_op", ""), ("label", "")):
        given[role] = none if given[role] is None else given[role]
    given["_prev"] = tuple(given["_prev"])
    return given, others
