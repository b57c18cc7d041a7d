"""micrograd as published: children in a set, a closure for every operation."""

from __future__ import annotations

import math
from typing import Any, Union

from zoomgrad.engines.api import Number
from zoomgrad.engines.value_base import Derived, check_exponent, power


class Value(Derived):
    """A scalar and its gradient."""

    def __init__(self, data: Any, _children: tuple[Value, ...] = (), _op: str = "", label: str = "") -> None:
        self.data = data
        self.grad: Any = 0
        self.label = label
        self._backward = lambda: None
        # A set loses the order of the children and collapses a*a to one child, so gradients depend on addresses.
        self._prev = set(_children)
        self._op = _op

    def __add__(self, other: Union[Value, Number]) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")

        def _backward() -> None:
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out

    def __mul__(self, other: Union[Value, Number]) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")

        def _backward() -> None:
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        return out

    def __pow__(self, other: Number) -> Value:
        other = check_exponent(other)
        out = Value(power(self.data, other), (self,), f"**{other}")

        def _backward() -> None:
            self.grad += (other * power(self.data, other - 1)) * out.grad

        out._backward = _backward
        return out

    def relu(self) -> Value:
        out = Value(0 if self.data < 0 else self.data, (self,), "ReLU")

        def _backward() -> None:
            self.grad += (out.data > 0) * out.grad

        out._backward = _backward
        return out

    def tanh(self) -> Value:
        out = Value(math.tanh(self.data), (self,), "tanh")

        def _backward() -> None:
            self.grad += (1 - out.data * out.data) * out.grad

        out._backward = _backward
        return out

    def exp(self) -> Value:
        out = Value(math.exp(self.data), (self,), "exp")

        def _backward() -> None:
            self.grad += out.data * out.grad

        out._backward = _backward
        return out

    def log(self) -> Value:
        out = Value(math.log(self.data), (self,), "log")

        def _backward() -> None:
            self.grad += (1 / self.data) * out.grad

        out._backward = _backward
        return out

    def sigmoid(self) -> Value:
        out = Value(1 / (1 + math.exp(-self.data)), (self,), "sigmoid")

        def _backward() -> None:
            self.grad += (out.data * (1 - out.data)) * out.grad

        out._backward = _backward
        return out

    def max(self, other: Union[Value, Number]) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data if self.data > other.data else other.data, (self, other), "max")

        def _backward() -> None:
            if self.data > other.data:
                self.grad += out.grad
            else:
                other.grad += out.grad

        out._backward = _backward
        return out

    def backward(self) -> None:
        self.grad = 1
        for v in reversed(self.topo()):
            v._backward()
