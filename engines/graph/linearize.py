"""Value graph -> Tape: number the nodes in canonical order.

All later stages see rows in one fixed order, which makes engines comparable bit for bit. Example: `a * b + a` gives
rows 0 `a`, 1 `b`, 2 `*` 0 1, 3 `+` 2 0.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

from engines.api import CyclicGraph, Number
from engines.graph.tape import CONSTANT, INPUT, NONE, PARAMETER, Tape
from engines.graph.value import Value
from engines.value_base import refuse_closure

_NEW, _OPEN, _NAMED = -1, -2, -3
"""States of `Value._row` before it holds a row: not reached yet; reached, with operands still to number; the n-th input
or parameter, as `_NAMED - n`."""


def linearize(
    loss: Value, *, inputs: Sequence[Value] = (), parameters: Sequence[Value] = (), outputs: Sequence[Value] = ()
) -> Tape:
    """Number the Values below the loss and the outputs in canonical order: operands first, left before right.

    Leaves that are neither inputs nor parameters are constants. The walk does not recurse, so 10⁵-deep chains work.
    Raises TypeError for anything but a recording Value, ValueError for an input or parameter that is not a leaf or is
    named twice and for a constant that is not finite, and CyclicGraph.
    """
    with _WALKING:
        if hasattr(loss, "_record"):
            recorded = loss._record(tuple(inputs), tuple(parameters), tuple(outputs))
            if recorded is not None:
                return _from_columns(recorded, len(inputs), len(parameters))
            if any(v._has_own_backward for v in loss.topo()):
                refuse_closure("a compiled engine")
        return _linearize(loss, inputs, parameters, outputs)


def _from_columns(recorded, inputs, parameters):
    from array import array

    from engines.graph.ops import OPS

    ops, left, right, index, constants, loss, outputs = recorded
    names = ["input", "parameter", "constant", *OPS]
    ix = array("i", index)
    numbers = {r: (ix[r] if ops[r] < 2 else constants[ix[r]]) for r in range(len(ix)) if ix[r] >= 0}
    return Tape(
        [names[c] for c in ops],
        list(array("i", left)),
        list(array("i", right)),
        numbers,
        loss,
        outputs,
        inputs,
        parameters,
    )


_WALKING = threading.Lock()
"""Values store their rows during a walk, so threads that compile the same graph must take turns."""


def _linearize(loss: Value, inputs: Sequence[Value], parameters: Sequence[Value], outputs: Sequence[Value]) -> Tape:
    walk = _Walk()
    try:
        walk.name(INPUT, inputs)
        walk.name(PARAMETER, parameters)
        for name, root in (("the loss", loss), *((f"outputs[{i}]", output) for i, output in enumerate(outputs))):
            if not _is_recorded(root):
                raise TypeError(_stranger(name, root))
            walk.number(root)
        return Tape(
            walk.ops,
            walk.left,
            walk.right,
            walk.numbers,
            loss._row,
            tuple(output._row for output in outputs),
            len(inputs),
            len(parameters),
        )
    finally:
        walk.forget()


class _Walk:
    """The rows so far. Each Value stores its own row, because a dictionary would take most of the time."""

    def __init__(self) -> None:
        self.ops: list[str] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.numbers: dict[int, Number] = {}
        self.values: list[Value] = []
        self.stack: list[Value] = []
        self.named: list[tuple[str, int]] = []
        """Kind and index of each input and parameter, in the order of `_NAMED - n`."""

    def name(self, kind: str, values: Sequence[Value]) -> None:
        """Mark leaves as inputs or parameters."""
        for index, v in enumerate(values):
            if not _is_recorded(v):
                raise TypeError(_stranger(f"{kind}s[{index}]", v))
            if v._prev:
                raise ValueError(
                    f"{kind}s[{index}] is the result of {v._op!r}\n  Name the leaf that it is computed from."
                )
            if v._row != _NEW:
                raise ValueError(
                    f"{kind}s[{index}] is already {'{}s[{}]'.format(*self.named[_NAMED - v._row])}\n"
                    "  Name each leaf once."
                )
            v._row = _NAMED - len(self.named)
            self.named.append((kind, index))
            self.values.append(v)

    def number(self, root: Value) -> None:
        """Give a row to the root and to every Value below it that has none."""
        # The hottest loop of a compilation, so it uses local names and keeps leaves off the stack.
        stack, values, named, numbers = self.stack, self.values, self.named, self.numbers
        ops, lefts, rights = self.ops, self.left, self.right
        if root._row < 0:
            if root._prev:
                stack.append(root)
            else:
                self.leaf(root)
        while stack:
            v = stack[-1]
            left = right = NONE
            for operand in v._prev:
                row = operand._row
                if row < 0:
                    if row <= _NAMED:
                        op, number = named[_NAMED - row]
                        row = operand._row = len(ops)
                        numbers[row] = number
                        ops.append(op)
                        lefts.append(NONE)
                        rights.append(NONE)
                    elif operand._prev:
                        if row == _OPEN:
                            raise CyclicGraph(operand)
                        v._row = _OPEN
                        stack.append(operand)
                        break
                    else:
                        row = self.leaf(operand)
                if left < 0:
                    left = row
                else:
                    right = row
            else:
                del stack[-1]
                v._row = len(ops)
                if v._constant is not None:
                    numbers[v._row] = v._constant
                values.append(v)
                ops.append(v._name)
                lefts.append(left)
                rights.append(right)

    def leaf(self, v: Value) -> int:
        """Give a row to an input, a parameter or a constant. Raises ValueError for a constant that is not finite."""
        op, number = (CONSTANT, v.data) if v._row > _NAMED else self.named[_NAMED - v._row]
        if not math.isfinite(number):
            raise ValueError(f"a leaf is {number}, and constants must be finite\n  Name it among the inputs.")
        row = v._row = len(self.ops)
        self.numbers[row] = number
        self.values.append(v)
        self.ops.append(op)
        self.left.append(NONE)
        self.right.append(NONE)
        return row

    def forget(self) -> None:
        """Reset the Values to their state before the walk."""
        for v in (*self.values, *self.stack):
            v._row = _NEW


def _is_recorded(v: object) -> bool:
    return isinstance(v, Value) or hasattr(v, "_record")


def _stranger(what: str, found: Any) -> str:
    return f"{what} is {found!r}, not a Value of a compiled engine\n  Build the graph from `engines.load(name).Value`."
