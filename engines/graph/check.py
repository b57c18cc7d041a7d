"""Check a tape against its grammar."""

from __future__ import annotations

import math
import os

from zoomgrad.engines.graph.ops import OPS
from zoomgrad.engines.graph.tape import CONSTANT, INPUT, LEAVES, NONE, PARAMETER, Tape, names

CHECKED = bool(os.environ.get("ZOOMGRAD_CHECK"))
"""Whether each stage checks its result. Off by default: checks take a fifth of a compilation, and find only our own
bugs. Tests turn them on."""


class BrokenTape(Exception):
    """A tape breaks the grammar. Names the row and the fault, which is a bug in what made the tape."""


def check(tape: Tape) -> Tape:
    """Return the tape. Raises BrokenTape: a wrong order or arity, a number that is not finite, or an unread row."""
    # Code -> whether its rows have a left operand, a right one, and a number.
    shapes = [(False, False, True)] * len(LEAVES)
    shapes += [(op.arity >= 1, op.arity >= 2, op.takes_constant) for op in OPS.values()]
    if not len(tape) == len(tape.left) == len(tape.right) == len(tape.index):
        raise BrokenTape("the columns differ in length")
    limits = {INPUT: tape.inputs, PARAMETER: tape.parameters}
    read = bytearray(len(tape) + 1)  # the last entry is for NONE
    for row, (op, left, right, index) in enumerate(zip(tape.ops, tape.left, tape.right, tape.index)):
        shape = (left != NONE, right != NONE, index != NONE)
        if op >= len(shapes) or shapes[op] != shape or not NONE <= left < row or not NONE <= right < row:
            raise _broken(
                tape, row, "there is no such op, it has other operands or no number, or an operand comes later"
            )
        read[left] = read[right] = 1
        if index != NONE:
            limit = limits.get(op, len(tape.constants))
            if not 0 <= index < limit:
                raise _broken(tape, row, f"its number is {index:,}, but there are only {limit:,}")
            if op not in limits and not math.isfinite(tape.constants[index]):
                remedy = "; compile it as an input" if op == CONSTANT else ""
                raise _broken(tape, row, f"its number must be finite, but is {tape.constants[index]}{remedy}")
    for name, root in (("the loss", tape.loss), *((f"outputs[{i}]", row) for i, row in enumerate(tape.outputs))):
        if not 0 <= root < len(tape):
            raise BrokenTape(f"{name} is %{root}, but the tape ends after {len(tape):,} rows")
        read[root] = 1
    unread = read.find(0, 0, len(tape))
    if unread >= 0:
        raise _broken(tape, unread, "nothing reads it")
    return tape


def _broken(tape: Tape, row: int, why: str) -> BrokenTape:
    code = tape.ops[row]
    op = names()[code] if code < len(names()) else code
    return BrokenTape(f"row %{row} ({op}, operands {tape.left[row]} and {tape.right[row]}): {why}")
