"""One graph for all steps: each Value has a backward function and a forward function, which recomputes its data."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Union

from zoomgrad.engines.api import Number
from zoomgrad.engines.value_base import Derived, check_exponent, power


class Value(Derived):
    """A scalar and its gradient."""

    __slots__ = ("_contribute", "_exponent", "_forward", "_op", "_prev", "data", "grad", "label")

    _exponent: Number  # set only for a power

    def __init__(self, data: Any, _children: tuple[Value, ...] = (), _op: str = "", label: str = "") -> None:
        self.data = data
        self.grad: Any = 0
        self.label = label
        self._forward = _leaf
        self._contribute = _leaf
        self._prev = _children
        self._op = _op

    def __add__(self, other: Union[Value, Number]) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")
        out._forward = _add_forward
        out._contribute = _add_backward
        return out

    def __mul__(self, other: Union[Value, Number]) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")
        out._forward = _mul_forward
        out._contribute = _mul_backward
        return out

    def __pow__(self, other: Number) -> Value:
        other = check_exponent(other)
        out = Value(power(self.data, other), (self,), f"**{other}")
        out._exponent = other
        out._forward = _pow_forward
        out._contribute = _pow_backward
        return out

    def relu(self) -> Value:
        out = Value(0 if self.data < 0 else self.data, (self,), "ReLU")
        out._forward = _relu_forward
        out._contribute = _relu_backward
        return out

    def tanh(self) -> Value:
        out = Value(math.tanh(self.data), (self,), "tanh")
        out._forward = _tanh_forward
        out._contribute = _tanh_backward
        return out

    def exp(self) -> Value:
        out = Value(math.exp(self.data), (self,), "exp")
        out._forward = _exp_forward
        out._contribute = _exp_backward
        return out

    def log(self) -> Value:
        out = Value(math.log(self.data), (self,), "log")
        out._forward = _log_forward
        out._contribute = _log_backward
        return out

    def sigmoid(self) -> Value:
        out = Value(1 / (1 + math.exp(-self.data)), (self,), "sigmoid")
        out._forward = _sigmoid_forward
        out._contribute = _sigmoid_backward
        return out

    def max(self, other: Union[Value, Number]) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data if self.data > other.data else other.data, (self, other), "max")
        out._forward = _max_forward
        out._contribute = _max_backward
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


def _leaf(out: Value) -> None:
    pass


def _add_forward(out: Value) -> None:
    a, b = out._prev
    out.data = a.data + b.data


def _add_backward(out: Value) -> None:
    a, b = out._prev
    a.grad += out.grad
    b.grad += out.grad


def _mul_forward(out: Value) -> None:
    a, b = out._prev
    out.data = a.data * b.data


def _mul_backward(out: Value) -> None:
    a, b = out._prev
    a.grad += b.data * out.grad
    b.grad += a.data * out.grad


def _pow_forward(out: Value) -> None:
    (a,) = out._prev
    out.data = power(a.data, out._exponent)


def _pow_backward(out: Value) -> None:
    (a,) = out._prev
    k = out._exponent
    a.grad += (k * power(a.data, k - 1)) * out.grad


def _relu_forward(out: Value) -> None:
    (a,) = out._prev
    out.data = 0 if a.data < 0 else a.data


def _relu_backward(out: Value) -> None:
    (a,) = out._prev
    a.grad += (out.data > 0) * out.grad


def _tanh_forward(out: Value) -> None:
    (a,) = out._prev
    out.data = math.tanh(a.data)


def _tanh_backward(out: Value) -> None:
    (a,) = out._prev
    a.grad += (1 - out.data * out.data) * out.grad


def _exp_forward(out: Value) -> None:
    (a,) = out._prev
    out.data = math.exp(a.data)


def _exp_backward(out: Value) -> None:
    (a,) = out._prev
    a.grad += out.data * out.grad


def _log_forward(out: Value) -> None:
    (a,) = out._prev
    out.data = math.log(a.data)


def _log_backward(out: Value) -> None:
    (a,) = out._prev
    a.grad += (1 / a.data) * out.grad


def _sigmoid_forward(out: Value) -> None:
    (a,) = out._prev
    out.data = 1 / (1 + math.exp(-a.data))


def _sigmoid_backward(out: Value) -> None:
    (a,) = out._prev
    a.grad += (out.data * (1 - out.data)) * out.grad


def _max_forward(out: Value) -> None:
    a, b = out._prev
    out.data = a.data if a.data > b.data else b.data


def _max_backward(out: Value) -> None:
    a, b = out._prev
    if a.data > b.data:
        a.grad += out.grad
    else:
        b.grad += out.grad
