"""The Value that compiled engines record: micrograd's API over the op table.

It computes `data` at once and `backward` works, so any micrograd program runs on it. In addition, its graph can be
linearized and compiled. Data are doubles from the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional, Union

from zoomgrad.engines.api import Number
from zoomgrad.engines.graph.ops import OPS
from zoomgrad.engines.value_base import Derived, check_exponent, no_closure


def _unary(op: str) -> Callable[[Value], Value]:
    """The method of an op with one operand."""

    def method(self: Value) -> Value:
        return Value(OPS[op].compute(self.data), (self,), op)

    return method


class Value(Derived):
    """A scalar, its gradient, and the operation that made it."""

    __slots__ = ("_constant", "_name", "_prev", "_row", "data", "grad", "label")

    def __init__(self, data: Number, _children: tuple[Value, ...] = (), _op: str = "", label: str = "") -> None:
        self.data: float = data if data.__class__ is float else float(data)
        self.grad: float = 0  # an int until backward reaches it, so that it prints as in micrograd
        self.label = label
        self._prev = _children
        self._name = _op
        """The op's name in the table; empty for a leaf."""
        self._constant: Optional[Number] = None
        self._row = -1
        """The row in the tape while `linearize` runs."""

    @property
    def _op(self) -> str:
        return self._name if self._constant is None else f"{self._name}{self._constant}"

    @_op.setter
    def _op(self, name: str) -> None:
        if self._prev:
            raise AttributeError(
                f"_op of {self!r} says how it is computed, so it can't be changed\n  Use `label` for a name."
            )
        self._name = name

    # Sums and products make up nearly the whole graph, so they skip the lookup in the op table.

    def __add__(self, other: Union[Value, Number]) -> Value:
        b = other if isinstance(other, Value) else Value(other)
        return Value(self.data + b.data, (self, b), "+")

    def __mul__(self, other: Union[Value, Number]) -> Value:
        b = other if isinstance(other, Value) else Value(other)
        return Value(self.data * b.data, (self, b), "*")

    def __pow__(self, other: Number) -> Value:
        other = check_exponent(other)
        out = Value(OPS["**"].compute(self.data, None, other), (self,), "**")
        out._constant = other
        return out

    relu = _unary("ReLU")
    tanh = _unary("tanh")
    exp = _unary("exp")
    log = _unary("log")
    sigmoid = _unary("sigmoid")

    def max(self, other: Union[Value, Number]) -> Value:
        b = other if isinstance(other, Value) else Value(other)
        return Value(OPS["max"].compute(self.data, b.data), (self, b), "max")

    def backward(self) -> None:
        self.grad = 1.0
        for v in reversed(self.topo()):
            v._contribute()

    _backward = no_closure("a compiled engine")

    def _contribute(self) -> None:
        if not self._prev:
            return
        op, a, b = OPS[self._name], self._prev[0], self._prev[-1]
        terms = op.contribute(a.data, b.data, self._constant, self.data, self.grad)
        for operand, term in zip(self._prev, terms if op.arity > 1 else (terms,)):
            operand.grad += term
