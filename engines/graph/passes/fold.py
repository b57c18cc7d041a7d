"""Replace rows that depend on constants only by constants, computed with the reference's own functions."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import compress, count
from typing import Optional

from engines.api import Number
from engines.graph.ops import OPS
from engines.graph.tape import CONSTANT, NONE, Tape


def fold(tape: Tape) -> Tape:
    """Fold constants. A row that raises or is not finite stays, so that the step that reaches it fails."""
    ops, numbers = tape.ops, tape.numbers
    if CONSTANT not in ops:
        return tape
    known: dict[int, Number] = {row: number for row, number in numbers.items() if ops[row] == CONSTANT}
    # A constant on the left is rare, so a fast search usually finds that there is nothing to do.
    if not any(known.keys() >= _operands(tape, row) for row in compress(count(), map(known.__contains__, tape.left))):
        return tape
    folded = False
    for row in range(len(tape)):
        if row not in known and tape.left[row] != NONE and known.keys() >= _operands(tape, row):
            value = _compute(tape, row, known)
            if value is not None:
                known[row] = value
                folded = True
    return _keep(tape, known) if folded else tape


def _operands(tape: Tape, row: int) -> set[int]:
    return {tape.left[row], tape.right[row]} - {NONE}


def _compute(tape: Tape, row: int, known: dict[int, Number]) -> Optional[float]:
    """The row's value; None if it can't be computed or is not finite."""
    op, left, right = tape.ops[row], tape.left[row], tape.right[row]
    try:
        value = OPS[op].compute(known[left], known.get(right), tape.numbers.get(row))
    except (ArithmeticError, ValueError):
        return None
    return value if math.isfinite(value) else None


def _keep(tape: Tape, known: dict[int, Number]) -> Tape:
    """The tape with known rows as constants, without the rows that only they read."""
    live = bytearray(len(tape) + 1)
    for root in (tape.loss, *tape.outputs):
        live[root] = 1
    for row in range(len(tape) - 1, -1, -1):
        if live[row] and row not in known:
            live[tape.left[row]] = live[tape.right[row]] = 1
    ops: list[str] = []
    left: list[int] = []
    right: list[int] = []
    numbers: dict[int, Number] = {}
    new = [NONE] * (len(tape) + 1)  # the last entry is for NONE
    for row in range(len(tape)):
        if not live[row]:
            continue
        new[row] = len(ops)
        if row in known or row in tape.numbers:
            numbers[len(ops)] = known[row] if row in known else tape.numbers[row]
        ops.append(CONSTANT if row in known else tape.ops[row])
        left.append(NONE if row in known else new[tape.left[row]])
        right.append(NONE if row in known else new[tape.right[row]])
    return replace(
        tape,
        ops=ops,
        left=left,
        right=right,
        numbers=numbers,
        loss=new[tape.loss],
        outputs=tuple(new[row] for row in tape.outputs),
    )
