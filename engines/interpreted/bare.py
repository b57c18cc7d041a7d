"""A number that computes with a Value's operators, one object an operation, and records nothing.

No children, no name of the operation, no closure, no gradient: what a model and its loss take over this class is the
forward pass of a step by itself. What an engine takes beyond that, it takes for its graph
(`harness/worker/anatomy.py`). It is no engine: nothing can be trained with it.
"""

from __future__ import annotations

import math
from typing import Any, Union

from engines.api import Number
from engines.derived import Derived, check_exponent, power


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
        check_exponent(other)
        return Bare(power(self.data, other))

    def relu(self) -> Bare:
        return Bare(0 if self.data < 0 else self.data)

    def tanh(self) -> Bare:
        return Bare(math.tanh(self.data))

    def exp(self) -> Bare:
        return Bare(math.exp(self.data))

    def log(self) -> Bare:
        return Bare(math.log(self.data))

    def max(self, other: Union[Bare, Number]) -> Bare:
        other = other if isinstance(other, Bare) else Bare(other)
        return Bare(self.data if self.data > other.data else other.data)
