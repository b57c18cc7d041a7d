"""Value -> its lines of C, as `compile()` and `backward_compile()` return them in "Compiling ML models to C for fun".

A program that generates its own C asks each Value of a topological order for its lines. Example: `z = x * y`, where
`x`, `y` and `z` have the identifiers 0, 1 and 2, and `x` and `y` are weights:

    forward(z)     "data[2] = data[0]*data[1];"
    backward(z)    ["grad[0] += data[1]*grad[2];", "grad[1] += data[0]*grad[2];"]

No engine uses this module: `published.py` spells the same C for a whole tape. `identified` derives the class with these
methods from an engine's Value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from zoomgrad.engines import nn
from zoomgrad.engines.graph.expr import Expr
from zoomgrad.engines.graph.ops import OPS, Op
from zoomgrad.engines.straight.published import spelled

CONSTANT, INPUT, WEIGHT, BIAS = "", "input", "weight", "bias"
"""What the post writes into `_op` of a leaf."""


def forward(v: Any) -> str:
    """The assignment of a Value; empty for a weight, a bias and an input, which are set elsewhere.

    Raises ValueError for an operation that is not in the op table, and for a constant that is not finite.
    """
    if v._op in (WEIGHT, BIAS, INPUT):
        return ""
    if v._op == CONSTANT:
        if not math.isfinite(v.data):
            raise ValueError(f"there is no C for the constant {v!r}\n  Give it _op='input', and set it in your C.")
        return f"{data(v)} = {+v.data};"  # + turns True into 1
    op, operands, constant = _row(v)
    return f"{data(v)} = {_spelled(op.forward, v, operands, constant)};"


def backward(v: Any) -> list[str]:
    """The Value's contributions to the gradients of its operands, except constants and inputs, which have none.

    Raises ValueError for an operation that is not in the op table.
    """
    if not v._prev:
        return []
    op, operands, constant = _row(v)
    return [
        f"{grad(operand)} += {_spelled(contribution, v, operands, constant)};"
        for operand, contribution in zip(operands, op.contributions)
        if operand._op not in (CONSTANT, INPUT)
    ]


def identified(value: Any) -> Any:
    """Return a subclass whose objects have `_id`, their number from 0, and print their own lines of C."""

    class Value(value):  # type: ignore[misc]
        __slots__ = ("_id",)
        __module__ = value.__module__  # the caller puts it there, so that pickle finds it
        __qualname__ = value.__qualname__

        counter = 0

        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self._id = Value.counter
            Value.counter += 1

        var, compile, backward_compile = data, forward, backward

        def getgrad(self) -> str:
            if self._op in (CONSTANT, INPUT):
                raise RuntimeError("constants and inputs have no gradient in the C of the post")
            return grad(self)

    return Value


class NamedNeuron(nn.Neuron):
    """A neuron whose leaves are named `weight` and `bias`: in the post's C, only named parameters have gradients."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        for weight in self.w:
            weight._op = WEIGHT
        self.b._op = BIAS


def data(v: Any) -> str:
    """The Value's place in `data`."""
    return f"data[{v._id}]"


def grad(v: Any) -> str:
    """The Value's place in `grad`."""
    return f"grad[{v._id}]"


def _row(v: Any) -> tuple[Op, tuple[Any, ...], str]:
    """The Value's row of the op table, its operands, and the constant in its `_op`, such as 2 in `**2`.

    The operands are in order if `_prev` is a tuple. A set has no order, and holds one `a` for `a * a`.
    """
    name, constant, operands = v._op, "", tuple(v._prev)
    if name.startswith("**"):
        name, constant = "**", {"True": "1", "False": "0"}.get(name[2:], name[2:])
    if name not in OPS:
        raise ValueError(f"there is no C for the operation {v._op!r}\n  Known: {', '.join(OPS)}.")
    return OPS[name], operands * OPS[name].arity if len(operands) == 1 else operands, constant


def _spelled(expr: Expr, v: Any, operands: Sequence[Any], constant: str) -> str:
    """Without spaces, as in the post."""
    rows = dict(zip("ab", (operand._id for operand in operands)))
    return spelled(expr).format(out=v._id, k=constant, **rows).replace(" ", "")
