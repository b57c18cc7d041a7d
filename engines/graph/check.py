"""Check a tape against its grammar. With ZOOMGRAD_CHECK set, this runs after every pass."""

from __future__ import annotations

import math

from engines.graph.ops import OPS
from engines.graph.tape import CONSTANT, INPUT, LEAVES, PARAMETER, Tape


class BrokenTape(Exception):
    """A tape breaks the grammar. Names the row and the fault, which is a bug in the pass that made the tape."""


def check(tape: Tape) -> Tape:
    """Return the tape. Raises BrokenTape: a wrong order or arity, a number that is not finite, or an unread row."""
    shapes = _shapes()
    numbers = tape.numbers
    read = bytearray(len(tape) + 1)  # the last entry is for NONE
    for row, (op, left, right) in enumerate(zip(tape.ops, tape.left, tape.right)):
        if shapes.get(op) != (left >= 0, right >= 0, row in numbers) or left >= row or right >= row:
            raise _broken(tape, row, _fault(tape, row))
        read[left] = read[right] = 1
    limits = {INPUT: tape.inputs, PARAMETER: tape.parameters}
    for row, number in numbers.items():
        if tape.ops[row] in limits and not 0 <= number < limits[tape.ops[row]]:
            raise _broken(tape, row, f"there are only {limits[tape.ops[row]]:,}")
        if not math.isfinite(number):
            remedy = "; compile it as an input" if tape.ops[row] == CONSTANT else ""
            raise _broken(tape, row, f"its number must be finite, but is {number}{remedy}")
    for name, root in (("the loss", tape.loss), *((f"outputs[{i}]", row) for i, row in enumerate(tape.outputs))):
        if not 0 <= root < len(tape):
            raise BrokenTape(f"{name} is %{root}, but the tape ends after {len(tape):,} rows")
        read[root] = 1
    unread = read.find(0, 0, len(tape))
    if unread >= 0:
        raise _broken(tape, unread, "nothing reads it")
    return tape


def _shapes() -> dict[str, tuple[bool, bool, bool]]:
    """Op -> whether its rows have a left operand, a right one, and a number."""
    ops = {op.name: (op.arity >= 1, op.arity >= 2, op.takes_constant) for op in OPS.values()}
    return ops | dict.fromkeys(LEAVES, (False, False, True))


def _fault(tape: Tape, row: int) -> str:
    op = tape.ops[row]
    if op not in _shapes():
        return f"there is no op {op!r}"
    left, right, numbered = _shapes()[op]
    if (tape.left[row] >= 0, tape.right[row] >= 0) != (left, right):
        return f"{op!r} takes {left + right} operands"
    if (row in tape.numbers) != numbered:
        return f"{op!r} takes {'a' if numbered else 'no'} number"
    return "an operand does not come before it"


def _broken(tape: Tape, row: int, why: str) -> BrokenTape:
    return BrokenTape(f"row %{row} ({tape.ops[row]}, operands {tape.left[row]} and {tape.right[row]}): {why}")
