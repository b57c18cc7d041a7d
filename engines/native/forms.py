"""Other formulas of the operations in the op table, as programs write them: the same function, other last digits.

A class of Value in C that stands in for a program's own takes the form with the program's bits and types. No compiler
takes these rows, so `_record` refuses a graph with one.
"""

from __future__ import annotations

from zoomgrad.engines.graph.expr import OUT, A, Expr, G, Literal, call, where
from zoomgrad.engines.graph.ops import OPS, Op

_TWICE, _UP, _DOWN = call("exp", 2.0 * A), call("exp", A), call("exp", -A)
_FLOAT_ZERO = Literal(0.0) / 1.0

FORMS: dict[str, tuple[tuple[Expr, ...], tuple[Expr, ...]]] = {
    "tanh": (((_TWICE - 1.0) / (_TWICE + 1.0), (_UP - _DOWN) / (_UP + _DOWN)), ((1.0 - call("pow", OUT, 2.0)) * G,)),
    "log": ((), (G / A,)),
    # max(0, a), max(0.0, a) and 0.0 if a < 0 else a; float(out > 0) * g
    "ReLU": (
        (where(A > 0.0, A, 0.0), where(A > 0.0, A, _FLOAT_ZERO), where(A < 0.0, _FLOAT_ZERO, A)),
        (((OUT > 0.0) * G) / 1.0,),
    ),
}
"""Operation -> other expressions for its result, and for its contribution."""

ROWS = tuple(
    Op(f"_{name}_{i}{j}", forward, (contribution,))
    for name, (forwards, contributions) in FORMS.items()
    for i, forward in enumerate((OPS[name].forward, *forwards))
    for j, contribution in enumerate((*OPS[name].contributions, *contributions))
    if i or j
)
"""Every combination. The name of a row ends in the numbers of its two expressions."""

METHODS = {
    name.lower(): (name.lower(), *(row.name.lower() for row in ROWS if row.name.startswith(f"_{name}_")))
    for name in FORMS
}
"""Operation -> the methods of Value with its forms, that of the table first."""
