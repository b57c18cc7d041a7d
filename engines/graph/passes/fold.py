"""Replace rows that depend on constants only by constants, computed with the reference's own functions."""

from __future__ import annotations

import math
from array import array
from dataclasses import replace
from itertools import compress, count
from typing import Optional

from zoomgrad.engines.api import Number
from zoomgrad.engines.graph.ops import OPS
from zoomgrad.engines.graph.tape import CONSTANT, LEAVES, NONE, Tape, names


def fold(tape: Tape) -> Tape:
    """Fold constants. A row that raises or is not finite stays, so that the step that reaches it fails."""
    # A constant on the left is rare, so the fastest search usually finds that there is nothing to do.
    if CONSTANT not in tape.ops or set(tape.rows_of(CONSTANT)).isdisjoint(tape.left):
        return tape
    # Row -> 1 if it is a constant. The last byte is for NONE, which keeps no row from being computed.
    is_known = bytearray(tape.ops.translate(bytes(code == CONSTANT for code in range(256)))) + b"\1"
    folded: dict[int, float] = {}
    # `is_known` is read when the loop arrives at a row, after its operands have been folded.
    for row in compress(count(), map(is_known.__getitem__, tape.left)):
        if is_known[tape.right[row]] and tape.ops[row] >= len(LEAVES):
            value = _compute(tape, row, folded)
            if value is not None:
                folded[row] = value
                is_known[row] = 1
    return _keep(tape, folded) if folded else tape


def _compute(tape: Tape, row: int, folded: dict[int, float]) -> Optional[float]:
    """The row's value; None if it can't be computed or is not finite."""

    def value_of(operand: int) -> Optional[Number]:
        if operand == NONE:
            return None
        return folded[operand] if operand in folded else tape.number(operand)

    op = OPS[names()[tape.ops[row]]]
    try:
        value = op.compute(value_of(tape.left[row]), value_of(tape.right[row]), tape.number(row))
    except (ArithmeticError, ValueError):
        return None
    return value if math.isfinite(value) else None


def _keep(tape: Tape, folded: dict[int, float]) -> Tape:
    """The tape with folded rows as constants, without the rows that only they read."""
    live = bytearray(len(tape) + 1)
    for root in (tape.loss, *tape.outputs):
        live[root] = 1
    for row in range(len(tape) - 1, -1, -1):
        if live[row] and row not in folded:
            live[tape.left[row]] = live[tape.right[row]] = 1
    ops, constants = bytearray(), list(tape.constants)
    left, right, index = array("i"), array("i"), array("i")
    new = [NONE] * (len(tape) + 1)  # the last entry is for NONE
    for row in compress(range(len(tape)), live):
        new[row] = len(ops)
        if row in folded:
            ops.append(CONSTANT)
            left.append(NONE)
            right.append(NONE)
            index.append(len(constants))
            constants.append(folded[row])
        else:
            ops.append(tape.ops[row])
            left.append(new[tape.left[row]])
            right.append(new[tape.right[row]])
            index.append(tape.index[row])
    return replace(
        tape,
        ops=ops,
        left=left,
        right=right,
        index=index,
        constants=constants,
        loss=new[tape.loss],
        outputs=tuple(new[row] for row in tape.outputs),
    )
