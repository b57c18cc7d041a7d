"""What a compiled function returns: Values that are one operation each, whose operands are the call's parameters.

In another expression, such as `loss + penalty`, they are operands as any other, and their gradients go through the
program. Below parameters that were computed before the call, the backward pass goes on as usual.
"""

# The class here derives from a class that is known at run time only.
# mypy: disable-error-code="misc, valid-type"
from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Callable


@cache
def maker(value: Any) -> Callable[[float, tuple[Any, ...], Any], Any]:
    """The function that makes results for this class, which may be one in C in place of a program's own.

    It takes the number, the operands and the gradient to start from.
    """

    class Result(value):
        """A Value that a compiled function returned.

        call: the `Call` that made it. place: among the results, where 0 is the loss.
        passes: its gradient in each backward pass so far.
        """

        __slots__ = ("call", "passes", "place")

        def _contribute(self) -> None:
            """Add to the gradients of the call's parameters."""
            if not hasattr(self, "call"):
                raise TypeError(f"a copy of {self!r} can't pass gradients on\n  Call backward() on the original.")
            self.call.variant.contribute(self)

    def make(number: float, operands: tuple[Any, ...], grad: Any) -> Any:
        result = Result.__new__(Result)
        result._restore(number, grad, operands, "compiled", None, False)  # not the program's constructor
        return result

    return make if hasattr(Result, "_restore") else lambda number, operands, _: Result(number, operands, "compiled")


def pass_to(parameters: Iterable[Any], result: Any) -> None:
    """Pass a Value's gradient on to the parameters, and not below them."""
    below = {id(v) for parameter in parameters for v in parameter.topo()}
    for v in reversed(result.topo()):
        if id(v) not in below:
            v._contribute()
