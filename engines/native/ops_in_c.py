"""Op table -> C: the numbers, forward functions, contributions and methods of the extension type.

Every primitive becomes a call of `number.h`, which keeps Python's ints. Example, for `tanh`:

    case OP_TANH: return number_tanh(a, hard);
    case OP_TANH: *to_a = number_mul(number_sub(whole(1.0), number_mul(out, out, hard), hard), g, hard); return;
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from zoomgrad.engines.graph.expr import MICROGRAD, Apply, Expr, Leaf, Literal, function
from zoomgrad.engines.graph.ops import LIBM, OPS
from zoomgrad.engines.graph.tape import LEAVES
from zoomgrad.engines.native.forms import ROWS

ALL = (*OPS.values(), *ROWS)
"""The op table, then other forms of its rows."""

IDENTIFIERS = {"+": "ADD", "*": "MUL", "**": "POW"}
"""Op -> its name in C, where that is not the op's own name in capitals."""


def text() -> str:
    """The part of the source that knows numbers and operations, but no Python objects.

    METHODS lists the ops that have no operator: each becomes UNARY(its method, its number) or BINARY(...).
    """
    rows = [f"{kind.upper()}_ROW = {code}" for code, kind in enumerate(LEAVES)]
    arities, names = ["0", *(str(op.arity) for op in ALL)], ['""', *(f'"{op.name}"' for op in ALL)]
    functions = [f"LIBM({name})" for name, _ in LIBM if name != "pow"]  # its result may be an int
    identifiers, methods, forward, contributions = list[str](), list[str](), list[str](), list[str]()
    for op in ALL:
        identifier = f"OP_{IDENTIFIERS.get(op.name, op.name.upper())}"
        identifiers.append(identifier)
        if op.name not in IDENTIFIERS:
            methods.append(f"{'BINARY' if op.arity == 2 else 'UNARY'}({op.name.lower()}, {identifier})")
        terms = " ".join(f"*to_{x} = {_spell(expr)};" for x, expr in zip("ab", op.contributions))
        forward.append(f"    case {identifier}: return {_spell(op.forward)};")
        contributions.append(f"    case {identifier}: {terms} return;")
    new_line = "\n"
    return f"""\
/* The op table. */
enum {{ OPS = {len(OPS)}, ALL_OPS = {len(ALL)} }};
enum {{ LEAF, {", ".join(identifiers)} }};
enum {{ {", ".join(rows)} }}; /* codes of a tape's rows; an op's is CONSTANT_ROW plus its own */
static const int ARITY[] = {{{", ".join(arities)}}};
static const char *const OP_NAME[] = {{{", ".join(names)}}};
#define METHODS(UNARY, BINARY) {" ".join(methods)}

{new_line.join(functions)}
static inline Number forward(int op, Number a, Number b, Number k, int *hard) {{
    switch (op) {{
{new_line.join(forward)}
    }}
    return a;
}}

static inline void contributions(
    int op, Number a, Number b, Number k, Number out, Number g, Number *to_a, Number *to_b, int *hard) {{
    switch (op) {{
{new_line.join(contributions)}
    }}
}}
"""


def in_python(*exprs: Expr) -> Callable[..., Any]:
    """The expressions as a function over Python's own numbers, with micrograd's ints and exceptions."""
    return function(*exprs, spelling=MICROGRAD, functions={**vars(math), "pow": operator.pow})


def _spell(expr: Expr) -> str:
    if isinstance(expr, Apply):
        flag = [] if expr.primitive in ("less", "greater", "where") else ["hard"]
        return f"number_{expr.primitive}({', '.join([*map(_spell, expr.operands), *flag])})"
    if isinstance(expr, Literal):
        return f"{'whole' if expr.number.is_integer() else 'real'}({expr.number!r})"
    assert isinstance(expr, Leaf)
    return expr.name
