"""No backward functions: each Value stores its partial derivatives, computed in the forward pass.

The partials are computed when the Value is created. If a program edits an operand's data between forward and backward,
this variant uses the old data; closures would read the new data.
"""

from __future__ import annotations

import math
from typing import Any, Union

from zoomgrad.engines.api import Number
from zoomgrad.engines.value_base import Derived, check_exponent, no_closure, power


class Value(Derived):
    """A scalar and its gradient."""

    __slots__ = ("_op", "_partials", "_prev", "_receivers", "data", "grad", "label")

    def __init__(self, data: Any, _children: tuple[Value, ...] = (), _op: str = "", label: str = "") -> None:
        self.data = data
        self.grad: Any = 0
        self.label = label
        self._partials: tuple[Any, ...] = ()
        self._receivers = _children
        self._prev = _children
        self._op = _op

    def __add__(self, other: Union[Value, Number]) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")
        out._partials = (1, 1)
        return out

    def __mul__(self, other: Union[Value, Number]) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")
        out._partials = (other.data, self.data)
        return out

    def __pow__(self, other: Number) -> Value:
        other = check_exponent(other)
        out = Value(power(self.data, other), (self,), f"**{other}")
        out._partials = (other * power(self.data, other - 1),)
        return out

    def relu(self) -> Value:
        out = Value(0 if self.data < 0 else self.data, (self,), "ReLU")
        out._partials = (out.data > 0,)
        return out

    def tanh(self) -> Value:
        out = Value(math.tanh(self.data), (self,), "tanh")
        out._partials = (1 - out.data * out.data,)
        return out

    def exp(self) -> Value:
        out = Value(math.exp(self.data), (self,), "exp")
        out._partials = (out.data,)
        return out

    def log(self) -> Value:
        out = Value(math.log(self.data), (self,), "log")
        out._partials = (1 / self.data,)
        return out

    def sigmoid(self) -> Value:
        out = Value(1 / (1 + math.exp(-self.data)), (self,), "sigmoid")
        out._partials = (out.data * (1 - out.data),)
        return out

    def max(self, other: Union[Value, Number]) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data if self.data > other.data else other.data, (self, other), "max")
        # The other operand gets nothing, because a partial of 0.0 would turn an infinite gradient into NaN.
        out._receivers = (self,) if self.data > other.data else (other,)
        out._partials = (1,)
        return out

    def backward(self) -> None:
        self.grad = 1
        for v in reversed(self.topo()):
            for receiver, partial in zip(v._receivers, v._partials):
                receiver.grad += partial * v.grad

    _backward = no_closure("local-grads")

    def _contribute(self) -> None:
        # `backward` repeats this loop, because a call for each Value would take time.
        for receiver, partial in zip(self._receivers, self._partials):
            receiver.grad += partial * self.grad
