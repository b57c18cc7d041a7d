"""Op table -> C: the numbers, forward functions, contributions and methods of the extension type.

Every primitive becomes a call of `number.h`, which keeps Python's ints. Example, for `tanh`:

    case OP_TANH: return number_tanh(a, hard);
    case OP_TANH: *to_a = number_mul(number_sub(whole(1.0), number_mul(out, out, hard), hard), g, hard); return;
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from zoomgrad.engines.graph.expr import MICROGRAD, Apply, Expr, Leaf, Literal, calls, function
from zoomgrad.engines.graph.ops import OPS, Op
from zoomgrad.engines.graph.tape import LEAVES
from zoomgrad.engines.native.forms import ROWS

ALL = (*OPS.values(), *ROWS)
"""The op table, then other forms of its rows."""

IDENTIFIERS = {"+": "ADD", "*": "MUL", "**": "POW"}
"""Op -> its name in C, where that is not the op's own name in capitals."""

HELPERS = ("FORWARD", "CONTRIBUTE", "CHECK_EXPONENT", "CYCLIC_GRAPH", "NUMPY_NUMBER")
"""What the extension type calls in Python, in the order of `configure`."""

IN_NUMBER_H = ("pow",)
"""Functions of libm that `number.h` wraps itself, because their result may be an int."""


def libm() -> set[tuple[str, int]]:
    """The libm functions that the table calls, each with its number of arguments."""
    return {call for op in ALL for expr in (op.forward, *op.contributions) for call in calls(expr)}


def before_the_type() -> str:
    """The part of the source that knows numbers and operations, but no Python objects."""
    return "\n".join([*_constants(), "", *_functions(), *_forward(), "", *_contributions(), ""])


def after_the_type() -> str:
    """The methods of the ops that have no operator."""
    unary, binary, methods = [], [], []
    for op in ALL:
        if op.name in IDENTIFIERS:
            continue
        method, code = f"{'_' if op in ROWS else ''}{op.name.lower()}", _identifier(op)
        if op.arity == 1:
            unary.append(f'    {{"{method}", METHOD(value_{method}), METH_NOARGS, NULL}}, \\')
            body = f"    return unary({code}, self);"
            methods.append(f"static PyObject *value_{method}(Value *self, PyObject *unused) {{\n{body}\n}}\n")
        else:
            binary.append(f'    {{"{method}", METHOD(value_{method}), METH_O, NULL}}, \\')
            body = f"    return binary({code}, self, other);"
            methods.append(f"static PyObject *value_{method}(Value *self, PyObject *other) {{\n{body}\n}}\n")
    tables = ["#define UNARY_METHODS \\", *unary, "", "#define BINARY_METHODS \\", *binary, ""]
    return "\n".join([*methods, *tables])


def in_python(*exprs: Expr) -> Callable[..., Any]:
    """The expressions as a function over Python's own numbers, with micrograd's ints and exceptions."""
    return function(*exprs, spelling=MICROGRAD, functions={**vars(math), "pow": operator.pow})


def _identifier(op: Op) -> str:
    return f"OP_{IDENTIFIERS.get(op.name, op.name.upper())}"


def _constants() -> Iterator[str]:
    yield "/* The op table. */"
    yield f"enum {{ OPS = {len(OPS)}, ALL_OPS = {len(ALL)} }};"
    yield f"enum {{ {', '.join(f'{_identifier(op)} = {i}' for i, op in enumerate(ALL, 1))} }};"
    yield f"enum {{ {', '.join([*HELPERS, 'HELPERS'])} }};"
    rows = [f"{kind.upper()}_ROW = {code}" for code, kind in enumerate(LEAVES)]
    yield f"enum {{ {', '.join(rows)} }}; /* codes of a tape's rows; an op's is CONSTANT_ROW plus its own */"
    yield f"static const int ARITY[] = {{{', '.join(['0', *(str(op.arity) for op in ALL)])}}};"
    names = ", ".join(f'"{name}"' for name in ("", *(op.name for op in ALL)))
    yield f"static const char *const NAME[] = {{{names}}};"


def _functions() -> Iterator[str]:
    for name, arity in sorted(libm()):
        if name in IN_NUMBER_H:
            continue
        parameters, arguments = zip(*((f"Number {x}", f"{x}.d") for x in "xyz"[:arity]))
        yield f"static inline Number number_{name}({', '.join(parameters)}, int *hard) {{"
        yield f"    double d = {name}({', '.join(arguments)});"
        yield "    *hard |= !isfinite(d);"
        yield "    return real(d);"
        yield "}"
        yield ""


def _forward() -> Iterator[str]:
    yield "static inline Number forward(int op, Number a, Number b, Number k, int *hard) {"
    yield "    switch (op) {"
    for op in ALL:
        yield f"    case {_identifier(op)}: return {_spell(op.forward)};"
    yield "    }"
    yield "    (void)b, (void)k;"
    yield "    return a;"
    yield "}"


def _contributions() -> Iterator[str]:
    operands = "Number a, Number b, Number k, Number out, Number g"
    yield f"static inline void contributions(int op, {operands}, Number *to_a, Number *to_b, int *hard) {{"
    yield "    switch (op) {"
    for op in ALL:
        targets = zip(("to_a", "to_b"), op.contributions)
        yield f"    case {_identifier(op)}: {' '.join(f'*{to} = {_spell(expr)};' for to, expr in targets)} return;"
    yield "    }"
    yield "}"


def _spell(expr: Expr) -> str:
    if isinstance(expr, Apply):
        operands = [_spell(operand) for operand in expr.operands]
        flag = [] if expr.primitive in ("less", "greater", "where") else ["hard"]
        return f"number_{expr.primitive}({', '.join([*operands, *flag])})"
    if isinstance(expr, Literal):
        return f"{'whole' if expr.number.is_integer() else 'real'}({expr.number!r})"
    assert isinstance(expr, Leaf)
    return expr.name
