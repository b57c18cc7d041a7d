"""One graph for all steps: each Value has a backward function and a forward function, which recomputes its data."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Union

from zoomgrad.engines.api import Number
from zoomgrad.engines.interpreted.hoisted import (
    add_backward,
    exp_backward,
    leaf_backward,
    log_backward,
    max_backward,
    mul_backward,
    pow_backward,
    relu_backward,
    sigmoid_backward,
    tanh_backward,
)
from zoomgrad.engines.value_base import Derived, check_exponent, power


class Value(Derived):
    """A scalar and its gradient."""

    __slots__ = ("_contribute", "_exponent", "_forward", "_op", "_prev", "data", "grad", "label")

    _exponent: Number  # set only for a power

    def __init__(self, data: Any, _children: tuple[Value, ...] = (), _op: str = "", label: str = "") -> None:
        self.data = data
        self.grad: Any = 0
        self.label = label
        self._forward: Callable[[Any], None] = leaf_backward  # a leaf does nothing in either pass
        self._contribute: Callable[[Any], None] = leaf_backward
        self._prev = _children
        self._op = _op

    def __add__(self, other: Union[Value, Number]) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")
        out._forward = _add_forward
        out._contribute = add_backward
        return out

    def __mul__(self, other: Union[Value, Number]) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")
        out._forward = _mul_forward
        out._contribute = mul_backward
        return out

    def __pow__(self, other: Number) -> Value:
        other = check_exponent(other)
        out = Value(power(self.data, other), (self,), f"**{other}")
        out._exponent = other
        out._forward = _pow_forward
        out._contribute = pow_backward
        return out

    def relu(self) -> Value:
        out = Value(0 if self.data < 0 else self.data, (self,), "ReLU")
        out._forward = _relu_forward
        out._contribute = relu_backward
        return out

    def tanh(self) -> Value:
        out = Value(math.tanh(self.data), (self,), "tanh")
        out._forward = _tanh_forward
        out._contribute = tanh_backward
        return out

    def exp(self) -> Value:
        out = Value(math.exp(self.data), (self,), "exp")
        out._forward = _exp_forward
        out._contribute = exp_backward
        return out

    def log(self) -> Value:
        out = Value(math.log(self.data), (self,), "log")
        out._forward = _log_forward
        out._contribute = log_backward
        return out

    def sigmoid(self) -> Value:
        out = Value(1 / (1 + math.exp(-self.data)), (self,), "sigmoid")
        out._forward = _sigmoid_forward
        out._contribute = sigmoid_backward
        return out

    def max(self, other: Union[Value, Number]) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data if self.data > other.data else other.data, (self, other), "max")
        out._forward = _max_forward
        out._contribute = max_backward
        return out

    def backward(self) -> None:
        self.grad = 1
        for v in reversed(self.topo()):
            v._contribute(v)

    @property
    def _backward(self) -> Callable[[], None]:
        return partial(self._contribute, self)

    @_backward.setter
    def _backward(self, contribute: Callable[[], None]) -> None:
        """Accept a closure, which is how programs add an operation to micrograd."""
        self._contribute = lambda out: contribute()


def _add_forward(out: Value) -> None:
    a, b = out._prev
    out.data = a.data + b.data


def _mul_forward(out: Value) -> None:
    a, b = out._prev
    out.data = a.data * b.data


def _pow_forward(out: Value) -> None:
    (a,) = out._prev
    out.data = power(a.data, out._exponent)


def _relu_forward(out: Value) -> None:
    (a,) = out._prev
    out.data = 0 if a.data < 0 else a.data


def _tanh_forward(out: Value) -> None:
    (a,) = out._prev
    out.data = math.tanh(a.data)


def _exp_forward(out: Value) -> None:
    (a,) = out._prev
    out.data = math.exp(a.data)


def _log_forward(out: Value) -> None:
    (a,) = out._prev
    out.data = math.log(a.data)


def _sigmoid_forward(out: Value) -> None:
    (a,) = out._prev
    out.data = 1 / (1 + math.exp(-a.data))


def _max_forward(out: Value) -> None:
    a, b = out._prev
    out.data = a.data if a.data > b.data else b.data
