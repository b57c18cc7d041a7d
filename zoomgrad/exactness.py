"""Where C's doubles would hide an error of Python.

A kernel computes infinity where Python raises OverflowError, and a later operation may hide it: `(1 + v.exp()) ** -1`
is 0.0 for a large `v`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, Callable

from zoomgrad.engines.graph.ops import OPS
from zoomgrad.engines.graph.tape import CONSTANT, INPUT, PARAMETER, Tape, names
from zoomgrad.engines.graph.value import Value

_NEVER_RAISE = frozenset({"+", "*", "ReLU", "tanh", "max"})
_SHOWN_BY_RESULT = frozenset({"exp", "log", "**"})
"""Their result is not finite where Python raises an error. Any other op is computed again."""


class Checks:
    """Values to look at after a forward pass, because an error there may not show in the loss and the outputs."""

    def __init__(self, loss: Any, outputs: Sequence[Any]) -> None:
        order = list({id(v): v for root in (loss, *outputs) for v in root.topo()}.values())  # operands first
        shown = {id(v) for v in (loss, *outputs)}
        for v in reversed(order):
            # What is not finite stays so in sums, products and positive powers.
            if id(v) in shown and (v._name in ("+", "*", "log") or (v._name == "**" and v._constant > 0)):
                shown.update(map(id, v._prev))
        raising = [v for v in order if v._prev and v._name not in _NEVER_RAISE]
        finite = [v for v in raising if v._name in _SHOWN_BY_RESULT and id(v) not in shown]
        again = [v for v in raising if v._name not in _SHOWN_BY_RESULT]
        self.values = [*finite, *(operand for v in again for operand in v._prev)]
        """More outputs that the program needs."""
        self._finite = len(finite)
        self._again: list[tuple[Callable[..., float], int]] = [(OPS[v._name].compute, len(v._prev)) for v in again]

    def pass_on(self, numbers: Sequence[float]) -> bool:
        """Whether Python would raise no error. numbers: those of `values`."""
        if not all(map(isfinite, numbers)):
            return False
        at = self._finite
        for compute, count in self._again:
            try:
                compute(*numbers[at : at + count])
            except ArithmeticError:
                return False
            at += count
        return True


def raise_as_python(tape: Tape, inputs: Sequence[float], parameters: Sequence[float]) -> None:
    """Compute the gradients in Python, which raises an error where a kernel computes infinity or NaN.

    Example: the derivative of `v**0.5` where `v` is 0.
    """
    rows: list[Value] = []
    for at, (op, left, right) in enumerate(zip(tape.ops, tape.left, tape.right)):
        number: Any = tape.number(at)
        if op in (INPUT, PARAMETER, CONSTANT):
            rows.append(Value(number if op == CONSTANT else (inputs, parameters)[op == PARAMETER][number]))
            continue
        name, operands = names()[op], tuple(rows[each] for each in (left, right) if each >= 0)
        data = [v.data for v in operands]
        rows.append(Value(OPS[name].compute(data[0], data[-1], number), operands, name))
        rows[-1]._constant = number
    rows[tape.loss].backward()
