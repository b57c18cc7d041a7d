"""What a compiled function returns in place of Values: their numbers, and the backward pass of the loss.

Both are Values to the program. In another expression, where a program's result is a number without a graph, they become
the Values that the function itself returns: it runs again, as it is. That costs what it cost uncompiled, so a warning
asks to return the whole loss.
"""

# The classes here derive from a class that is known at run time only.
# mypy: disable-error-code="misc, assignment, valid-type"
from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cache
from typing import Any

from zoomgrad.engines.graph.value import Value
from zoomgrad.signature import values_in

_OPERATORS = "add radd sub rsub mul rmul truediv rtruediv pow neg copy deepcopy reduce_ex"
_METHODS = (*(f"__{name}__" for name in _OPERATORS.split()), "relu", "tanh", "exp", "log", "sigmoid", "max", "topo")
_FIELDS = ("_prev", "_op", "_backward", "_name", "_constant")


@cache
def output_class(value: Any) -> Any:
    """The class of a Value beside the loss."""

    class Output(value):
        """A Value that the function returned: its number."""

        __slots__ = ("_loss", "_place", "data", "grad", "label")

        def __init__(self, data: float, loss: Any, place: int) -> None:
            hide(self, _NAN)
            self.data, self.grad, self.label = data, 0, ""
            self._loss, self._place = loss, place

        @property
        def real(self) -> Any:
            """The Value that the function itself computes."""
            return self._loss.reals()[self._place]

        def backward(self) -> None:
            self.real.backward()

        def __repr__(self) -> str:
            return f"Value(data={self.data}, grad={self.grad})"

    # A method in C, such as `w.max(output)`, would miss the graph, so it finds no number either.
    hide = value.data.__set__
    for name in _METHODS:
        setattr(Output, name, _delegated(name))
    for name in _FIELDS:
        setattr(Output, name, property(operator.attrgetter(f"real.{name}")))
    return Output


_NAN = float("nan")


def _delegated(name: str) -> Any:
    def method(self: Any, *others: Any) -> Any:
        return getattr(self.real, name)(*(getattr(each, "real", each) for each in others))

    return method


@cache
def loss_class(value: Any) -> Any:
    """The class of the loss of one call."""

    class Loss(output_class(value)):
        """The loss. `backward` adds to the gradients of the Values that the call used."""

        __slots__ = ("_call", "_reals", "_variant", "inputs", "numbers", "parameters")
        _loss, _place = property(lambda self: self), 0

        def __init__(self, data: float, variant: Any, parameters: Any, inputs: Any, numbers: Any, call: Any) -> None:
            """parameters: the Values that receive gradients. numbers: theirs at the call. call: its arguments."""
            hide(self, _NAN)
            self.data, self.grad, self.label = data, 0, ""
            self.parameters, self.inputs, self.numbers = parameters, inputs, numbers
            self._variant, self._call = variant, call

        def reals(self) -> Sequence[Any]:
            """The Values that the function itself returns for the arguments of the call."""
            if not hasattr(self, "_reals"):
                variant = self._current()
                self._reals = list(values_in(value, variant.again(variant, *self._call)))
                if self._reals[0].data != self.data:
                    raise TooLate(_OTHER_NUMBERS)
                self._variant = None
            return self._reals

        def backward(self) -> None:
            """Add the gradients. Raises RuntimeError the second time, and if a Value has another number."""
            if self._variant is None and hasattr(self, "_reals"):
                self.real.backward()
            else:
                self._current().backward(self)
                self._variant = None
            self.grad = 1.0

        def _current(self) -> Any:
            """The variant, if the program can still run for the numbers of the call."""
            variant = self._variant
            if variant is None:
                raise TooLate("backward ran already on this loss\n  Call the compiled function again first.")
            if not variant.is_current(self):
                raise TooLate(_OTHER_NUMBERS)
            return variant

    hide = value.data.__set__
    return Loss


class TooLate(RuntimeError, AttributeError):
    """The numbers of a call are gone. For `hasattr(loss, "_prev")`, so is the attribute."""


_OTHER_NUMBERS = (
    "a Value of this loss has another number now than when the loss was computed\n"
    "  Use the loss before the update, or call the compiled function again."
)


def continue_below(value: Any, computed: Sequence[Any]) -> None:
    """Let Values that were computed before a call pass their gradients on, as if they were operands of one loss."""
    root = value(0.0, tuple(computed))
    if value is Value:
        for v in reversed(root.topo()[:-1]):
            v._backward()
    else:  # the class in C walks faster, and a root without an operation passes nothing on
        root.backward()
