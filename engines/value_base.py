"""The part of a Value that all classes share, because it is not part of the experiment.

The derived operators keep micrograd's derivations, because the bits depend on them: `-x` is `x * -1`, `x - y` is
`x + (-y)`, `x / y` is `x * y**-1`. The one deviation from published micrograd is also here: `topo` does not recurse.
"""

from __future__ import annotations

import contextlib
import math
import operator
import sys
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NoReturn

from zoomgrad.engines.api import CyclicGraph, Number

if TYPE_CHECKING:
    from typing_extensions import Self


def _libm_power(base: Any, exponent: Any) -> Any:
    """`base ** exponent` by libm, with the operator's exceptions."""
    if isinstance(base, float):
        # If math.pow refuses, the operator raises CPython's exception or returns a complex number.
        with contextlib.suppress(ValueError):
            return math.pow(base, exponent)
    return base**exponent


# PyPy rewrites x ** 2 to x * x, which differs from libm's pow for about one in 1,200 inputs.
power = _libm_power if sys.implementation.name == "pypy" else operator.pow


def check_exponent(exponent: Any) -> Number:
    """Return an exponent as an int or a float. It must be a constant, as in micrograd: a Value would need `log`.

    Any real number will do, such as NumPy's or a Fraction, and gives the same bits as that int or float. Raises
    TypeError for anything else, ValueError for infinity, NaN, and a number too large for a float.
    """
    number = exponent
    if type(exponent) is not int and type(exponent) is not float:
        if not isinstance(exponent, Real):
            raise TypeError(
                f"the exponent of ** must be a real number, not {exponent!r}\n"
                "  If the exponent is a Value, write (b * a.log()).exp()."
            )
        try:
            number = int(exponent) if isinstance(exponent, Integral) else float(exponent)
        except OverflowError:
            number = math.inf
    if not -sys.float_info.max <= number <= sys.float_info.max:
        raise ValueError(
            f"the exponent of ** must be a finite number, not {exponent!r}\n"
            "  Powers are constants: check how this one is computed."
        )
    return number  # type: ignore[no-any-return]


def refuse_closure(engine: str) -> NoReturn:
    """Raise AttributeError: the engine would never call a backward function that a program sets."""
    raise AttributeError(
        f"{engine} has no backward functions, so a program can't add an operation by setting `_backward`\n"
        "  Use an engine that has them, such as `--engine hoisted`."
    )


def no_closure(engine: str) -> Any:
    """The property `_backward` of a class without backward functions: `_contribute`, which can't be replaced."""
    return property(lambda v: v._contribute, lambda v, closure: refuse_closure(engine))


class Derived:
    """Mixin: the operators that are derived from others, the traversal, and `repr`."""

    __slots__ = ()

    data: Any
    grad: Any

    if TYPE_CHECKING:  # each class has its own

        def __add__(self, other: Any) -> Self: ...
        def __mul__(self, other: Any) -> Self: ...
        def __pow__(self, other: Any) -> Self: ...

    def topo(self) -> list[Any]:
        """This Value and all Values below it, operands first: depth-first post-order, left before right.

        Raises CyclicGraph if `_prev` was edited into a cycle.
        """
        order: list[Any] = []
        entered: set[Any] = set()
        left: set[Any] = set()
        stack: list[Any] = [self]
        while stack:
            v = stack[-1]
            if v in entered:  # its operands are done, or this is the second visit
                stack.pop()
                if v not in left:
                    left.add(v)
                    order.append(v)
                continue
            entered.add(v)
            for child in reversed(tuple(v._prev)):
                if child not in left:
                    if child in entered:
                        raise CyclicGraph(child)
                    stack.append(child)
        return order

    def __neg__(self) -> Self:
        return self * -1

    def __radd__(self, other: Number) -> Self:
        return self + other

    def __sub__(self, other: Any) -> Self:
        return self + (-other)  # type: ignore[no-any-return]

    def __rsub__(self, other: Number) -> Self:
        return other + (-self)

    def __rmul__(self, other: Number) -> Self:
        return self * other

    def __truediv__(self, other: Any) -> Self:
        return self * (power(other, -1) if isinstance(other, (int, float)) else other**-1)  # type: ignore[no-any-return]

    def __rtruediv__(self, other: Number) -> Self:
        return other * self**-1

    def __repr__(self) -> str:
        return f"Value(data={self.data}, grad={self.grad})"
