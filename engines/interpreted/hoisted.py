"""Backward functions at module level: each takes its Value as an argument, so no closure is created.

A closure forms a cycle, because `out._backward` holds `out`, and only the garbage collector can free such a graph.
Without closures, reference counting frees it. Most of the gain on CPython comes from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Union

from zoomgrad.engines.api import Number
from zoomgrad.engines.value_base import Derived, check_exponent, power


class Value(Derived):
    """A scalar and its gradient."""

    __slots__ = ("_contribute", "_exponent", "_op", "_prev", "data", "grad", "label")

    _exponent: Number  # set only for a power

    def __init__(self, data: Any, _children: tuple[Value, ...] = (), _op: str = "", label: str = "") -> None:
        self.data = data
        self.grad: Any = 0
        self.label = label
        self._contribute = leaf_backward
        self._prev = _children
        self._op = _op

    def __add__(self, other: Union[Value, Number]) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")
        out._contribute = add_backward
        return out

    def __mul__(self, other: Union[Value, Number]) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")
        out._contribute = mul_backward
        return out

    def __pow__(self, other: Number) -> Value:
        other = check_exponent(other)
        out = Value(power(self.data, other), (self,), f"**{other}")
        out._exponent = other
        out._contribute = pow_backward
        return out

    def relu(self) -> Value:
        out = Value(0 if self.data < 0 else self.data, (self,), "ReLU")
        out._contribute = relu_backward
        return out

    def tanh(self) -> Value:
        out = Value(math.tanh(self.data), (self,), "tanh")
        out._contribute = tanh_backward
        return out

    def exp(self) -> Value:
        out = Value(math.exp(self.data), (self,), "exp")
        out._contribute = exp_backward
        return out

    def log(self) -> Value:
        out = Value(math.log(self.data), (self,), "log")
        out._contribute = log_backward
        return out

    def sigmoid(self) -> Value:
        out = Value(1 / (1 + math.exp(-self.data)), (self,), "sigmoid")
        out._contribute = sigmoid_backward
        return out

    def max(self, other: Union[Value, Number]) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data if self.data > other.data else other.data, (self, other), "max")
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


def leaf_backward(out: Value) -> None:
    pass


def add_backward(out: Value) -> None:
    a, b = out._prev
    a.grad += out.grad
    b.grad += out.grad


def mul_backward(out: Value) -> None:
    a, b = out._prev
    a.grad += b.data * out.grad
    b.grad += a.data * out.grad


def pow_backward(out: Value) -> None:
    (a,) = out._prev
    k = out._exponent
    a.grad += (k * power(a.data, k - 1)) * out.grad


def relu_backward(out: Value) -> None:
    (a,) = out._prev
    a.grad += (out.data > 0) * out.grad


def tanh_backward(out: Value) -> None:
    (a,) = out._prev
    a.grad += (1 - out.data * out.data) * out.grad


def exp_backward(out: Value) -> None:
    (a,) = out._prev
    a.grad += out.data * out.grad


def log_backward(out: Value) -> None:
    (a,) = out._prev
    a.grad += (1 / a.data) * out.grad


def sigmoid_backward(out: Value) -> None:
    (a,) = out._prev
    a.grad += (out.data * (1 - out.data)) * out.grad


def max_backward(out: Value) -> None:
    a, b = out._prev
    if a.data > b.data:
        a.grad += out.grad
    else:
        b.grad += out.grad
