"""A number with a Value's operators that records nothing: no children, operation, closure or gradient.

It makes one object per operation, so a model's time over this class is the cost of the forward pass alone. Any further
time of an engine goes into its graph (`harness/worker/anatomy.py`). This is not an engine: it can't train.
"""

from __future__ import annotations

import math
from typing import Any, Union

from zoomgrad.engines.api import Number
from zoomgrad.engines.value_base import Derived, check_exponent, power


class Bare(Derived):
    """A number."""

    __slots__ = ("data",)

    def __init__(self, data: Any) -> None:
        self.data = data

    def __add__(self, other: Union[Bare, Number]) -> Bare:
        other = other if isinstance(other, Bare) else Bare(other)
        return Bare(self.data + other.data)

    def __mul__(self, other: Union[Bare, Number]) -> Bare:
        other = other if isinstance(other, Bare) else Bare(other)
        return Bare(self.data * other.data)

    def __pow__(self, other: Number) -> Bare:
        other = check_exponent(other)
        return Bare(power(self.data, other))

    def relu(self) -> Bare:
        return Bare(0 if self.data < 0 else self.data)

    def tanh(self) -> Bare:
        return Bare(math.tanh(self.data))

    def exp(self) -> Bare:
        return Bare(math.exp(self.data))

    def log(self) -> Bare:
        return Bare(math.log(self.data))

    def sigmoid(self) -> Bare:
        return Bare(1 / (1 + math.exp(-self.data)))

    def max(self, other: Union[Bare, Number]) -> Bare:
        other = other if isinstance(other, Bare) else Bare(other)
        return Bare(self.data if self.data > other.data else other.data)
