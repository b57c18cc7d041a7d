"""Value graph -> Tape: number the nodes in canonical order.

All later stages see rows in one fixed order, which makes engines comparable bit for bit. Example: `a * b + a` gives
rows 0 `a`, 1 `b`, 2 `*` 0 1, 3 `+` 2 0.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Sequence
from typing import Any

from zoomgrad.engines.api import CyclicGraph, Number
from zoomgrad.engines.arguments import finite
from zoomgrad.engines.graph.ops import OPS
from zoomgrad.engines.graph.tape import CONSTANT, INPUT, LEAVES, NONE, PARAMETER, Tape, codes
from zoomgrad.engines.graph.value import Value
from zoomgrad.engines.value_base import refuse_closure

_NEW, _OPEN, _NAMED = -1, -2, -3
"""States of `Value._row` before it holds a row: not reached yet; reached, with operands still to number; the n-th input
or parameter, as `_NAMED - n`."""


def linearize(
    loss: Value, *, inputs: Sequence[Value] = (), parameters: Sequence[Value] = (), outputs: Sequence[Value] = ()
) -> Tape:
    """Number the Values below the loss and the outputs in canonical order: operands first, left before right.

    Leaves that are neither inputs nor parameters are constants. The walk does not recurse, so 10⁵-deep chains work.
    Raises TypeError for anything but a recording Value, ValueError for an input or parameter that is not a leaf or is
    named twice, for a constant that is not finite and for an unknown op, and CyclicGraph.
    """
    with _WALKING:
        if hasattr(loss, "_record"):
            recorded = loss._record(tuple(inputs), tuple(parameters), (loss, *outputs))
            if recorded is not None:  # the walk in C has filled buffers of bytes
                ops, buffer, constants = recorded
                count, numbers = len(ops), memoryview(buffer).cast("i")
                left, right, index = (numbers[i : i + count] for i in range(0, 3 * count, count))
                row, *rows = numbers[3 * count :]
                return Tape(ops, left, right, index, constants, row, tuple(rows), len(inputs), len(parameters))
            if any(v._backward != v._contribute for v in loss.topo()):
                refuse_closure("a compiled engine")
        walk = _Walk()
        try:
            walk.mark(INPUT, inputs)
            walk.mark(PARAMETER, parameters)
            for name, root in (("the loss", loss), *((f"outputs[{i}]", output) for i, output in enumerate(outputs))):
                _check_recorded(name, root)
                walk.number(root)
            output_rows = tuple(output._row for output in outputs)
            return Tape(*walk.columns(), loss._row, output_rows, len(inputs), len(parameters))
        finally:
            walk.forget()


_WALKING = threading.Lock()
"""Values store their rows during a walk, so threads that compile the same graph must take turns."""


class _Walk:
    """The rows so far. Each Value stores its own row, because a dictionary would take most of the time."""

    def __init__(self) -> None:
        self.named: list[tuple[int, int, Value]] = []
        """Code, index and Value of each input and parameter, in the order of `_NAMED - n`."""
        self.values: list[Value] = []
        self.left: list[int] = []  # appending to a list takes half the time of appending to an array
        self.right: list[int] = []
        self.stack: list[Value] = []

    def mark(self, code: int, values: Sequence[Value]) -> None:
        kind = LEAVES[code]
        for index, v in enumerate(values):
            _check_recorded(f"{kind}s[{index}]", v)
            if v._prev:
                raise ValueError(
                    f"{kind}s[{index}] is the result of {v._op!r}\n  Name the leaf that it is computed from."
                )
            if v._row != _NEW:
                other, at, _ = self.named[_NAMED - v._row]
                raise ValueError(f"{kind}s[{index}] is already {LEAVES[other]}s[{at}]\n  Name each leaf once.")
            v._row = _NAMED - len(self.named)
            self.named.append((code, index, v))

    def number(self, root: Value) -> None:
        """Give a row to the root and to every Value below it that has none."""
        # The hottest loop of a compilation, so it uses local names and keeps leaves off the stack.
        stack, values, lefts, rights = self.stack, self.values, self.left, self.right
        if root._row < 0:
            stack.append(root)
        while stack:
            v = stack[-1]
            left = right = NONE
            for operand in v._prev:
                row = operand._row
                if row < 0:
                    if operand._prev:
                        if row == _OPEN:
                            raise CyclicGraph(operand)
                        operand._row = _OPEN
                        stack.append(operand)
                        break
                    row = operand._row = len(values)
                    values.append(operand)
                    lefts.append(NONE)
                    rights.append(NONE)
                if left < 0:
                    left = row
                else:
                    right = row
            else:
                del stack[-1]
                v._row = len(values)
                values.append(v)
                lefts.append(left)
                rights.append(right)

    def columns(self) -> tuple[bytes, array[int], array[int], array[int], list[Number]]:
        """The columns of a Tape, from `ops` to `constants`."""
        constants: list[Number] = []
        code_of = codes()
        ops, index = bytearray([CONSTANT]) * len(self.values), array("i", [NONE]) * len(self.values)
        for code, number, v in self.named:
            if v._row >= 0:  # the graph uses it
                ops[v._row], index[v._row] = code, number
        for row, (v, left) in enumerate(zip(self.values, self.left)):
            if left != NONE:
                if v._name not in OPS:
                    what = f"the operation {v._name!r} of {v!r}"
                    raise ValueError(f"{what} is not in the op table\n  Known: {', '.join(OPS)}.")
                ops[row], constant = code_of[v._name], v._constant
            elif index[row] != NONE:
                continue
            else:
                try:
                    constant = finite(v.data, "a constant")
                except (TypeError, ValueError):
                    what = f"a leaf is {v.data}, and constants must be finite"
                    raise ValueError(f"{what}\n  Name it among the inputs.") from None
            if constant is not None:
                index[row] = len(constants)
                constants.append(constant)
        return bytes(ops), array("i", self.left), array("i", self.right), index, constants

    def forget(self) -> None:
        """Reset the Values to their state before the walk."""
        for v in (*self.values, *self.stack, *(v for _, _, v in self.named)):
            if isinstance(v, Value):
                v._row = _NEW
            else:
                v.__dict__.pop("_row", None)  # in C, `_row` is an ordinary attribute


def _check_recorded(what: str, v: Any) -> None:
    if not isinstance(v, Value) and not hasattr(v, "_record"):
        remedy = "Build the graph from `engines.load(name).Value`."
        raise TypeError(f"{what} is {v!r}, not a Value of a compiled engine\n  {remedy}")
