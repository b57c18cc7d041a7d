"""Rows over constants alone become constants, computed by the very functions that the reference uses."""

from __future__ import annotations

import math
from dataclasses import replace

from engines.api import Number
from engines.graph.ops import OPS
from engines.graph.tape import CONSTANT, NONE, Tape


def fold(tape: Tape) -> Tape:
    """A row that raises, or gives no finite number, stays as it is: the step that reaches it must tell."""
    ops, numbers = tape.ops, tape.numbers
    if CONSTANT not in ops:
        return tape
    known: dict[int, Number] = {row: number for row, number in numbers.items() if ops[row] == CONSTANT}
    folded = False
    for row, (op, left, right) in enumerate(zip(ops, tape.left, tape.right)):
        if left in known and (right in known or right == NONE):
            try:
                value = OPS[op].compute(known[left], known.get(right), numbers.get(row))
            except (ArithmeticError, ValueError):
                continue
            if math.isfinite(value):
                known[row] = value
                folded = True
    return _keep(tape, known) if folded else tape


def _keep(tape: Tape, known: dict[int, Number]) -> Tape:
    """The tape with known rows as constants, without what only they read."""
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
    new = [NONE] * (len(tape) + 1)  # the last one is NONE's
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
