"""Tape -> the same tape, or an error that names the first broken row. Runs after every pass."""

from __future__ import annotations

import math

from engines.graph.ops import OPS
from engines.graph.tape import CONSTANT, INPUT, LEAVES, PARAMETER, Tape


class BrokenTape(Exception):
    """A tape that breaks the grammar: which row, and how. A mistake of the pass that made it."""


def check(tape: Tape) -> Tape:
    """The tape itself. Raises BrokenTape: order, arity, finite constants, no row that nothing reads."""
    arities = {op.name: op.arity for op in OPS.values()} | dict.fromkeys(LEAVES, 0)
    numbered = {op.name for op in OPS.values() if op.takes_constant} | set(LEAVES)
    numbers = tape.numbers
    read = bytearray(len(tape) + 1)  # the last one is NONE's
    for row, (op, left, right) in enumerate(zip(tape.ops, tape.left, tape.right)):
        if op not in arities:
            raise _broken(tape, row, f"there is no op {op!r}")
        if (left >= 0) + (right >= 0) != arities[op] or right >= 0 > left:
            raise _broken(tape, row, f"{op!r} takes {arities[op]} operands")
        if left >= row or right >= row:
            raise _broken(tape, row, "an operand does not come before it")
        if (op in numbered) != (row in numbers):
            raise _broken(tape, row, f"{op!r} takes {'a' if op in numbered else 'no'} number")
        read[left] = read[right] = 1
    limits = {INPUT: tape.inputs, PARAMETER: tape.parameters}
    for row, number in numbers.items():
        if tape.ops[row] in limits and not 0 <= number < limits[tape.ops[row]]:
            raise _broken(tape, row, f"there are only {limits[tape.ops[row]]:,}")
        if not math.isfinite(number):
            remedy = "; compile it as an input" if tape.ops[row] == CONSTANT else ""
            raise _broken(tape, row, f"its number must be finite, and is {number}{remedy}")
    for name, root in (("the loss", tape.loss), *((f"outputs[{i}]", row) for i, row in enumerate(tape.outputs))):
        if not 0 <= root < len(tape):
            raise BrokenTape(f"{name} is %{root}, of {len(tape):,} rows")
        read[root] = 1
    unread = read.find(0, 0, len(tape))
    if unread >= 0:
        raise _broken(tape, unread, "nothing reads it")
    return tape


def _broken(tape: Tape, row: int, why: str) -> BrokenTape:
    return BrokenTape(f"row %{row} ({tape.ops[row]}, operands {tape.left[row]} and {tape.right[row]}): {why}")
