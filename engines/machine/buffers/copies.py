"""Copies between the caller's buffers and the workspace, which keep the same numbers in different orders.

A copy is cut into rectangles, which stand in a table, and one routine copies them all. Example: a matrix of 3 rows and
2 columns, whose rows lie 16 places apart in the workspace and 2 places apart in the buffer, is one rectangle:

    buffer  0 1 2 3 4 5      workspace  0 1 … 16 17 … 32 33
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from zoomgrad.engines.machine.encode import R8, R9, R10, R11, R12, R14, RAX, RBP, RCX, RDI, RSI, Assembler, Mem, Vec
from zoomgrad.engines.machine.expression import Evaluator
from zoomgrad.engines.rerolled.recover.loops import Copy

COPY = "copy"
"""The routine that copies the R14 rectangles of the table at RBP from R8 to R9."""
RECTANGLE = 64
"""Bytes of a rectangle in the table: its first place in the source and in the target, its rows and columns, the
distance from row to row in both, and that from column to column. Places and distances are in bytes."""
SIDE = 8
"""Rows of a strip. A transposed matrix is copied strip by strip, to use each cache line of the other side whole."""


def rectangles(copy: Copy, takes: bool) -> bytes:
    """The table of a copy. takes: from the buffer to the workspace; else the other way."""
    import numpy as np

    *outer, rows, columns = copy.counts
    source, to = (copy.entry, copy.place) if takes else (copy.place, copy.entry)
    row, column = (tuple(8 * access.lanes[lane] for access in (source, to)) for lane in (-2, -1))
    is_turned = 8 in row and columns > SIDE
    firsts = np.arange(0, rows, SIDE if is_turned else rows)
    table = np.empty((math.prod(outer), len(firsts), RECTANGLE // 8), "<i8")
    for at, access in enumerate((source, to)):
        starts = access._replace(lanes=access.lanes[:-2]).places(outer)
        table[..., at] = 8 * starts[:, None] + row[at] * firsts
    table[..., 2:] = (columns, SIDE, *column, *row) if is_turned else (rows, columns, *row, *column)
    table[:, -1, 2 + is_turned] = rows - firsts[-1]  # the last strip may have fewer rows
    return table.tobytes()


def write_copy(evaluator: Evaluator) -> None:
    """Write the routine that copies rectangles."""
    code = evaluator.code
    apart, done = code.new_label(), code.new_label()
    code.label(COPY)
    with code.counted_down(R14):
        for pointer, start, at in ((R10, R8, 0), (R11, R9, 1)):
            code.integer("mov", pointer, Mem(RBP, 8 * at))
            code.integer("add", pointer, start)
        code.integer("mov", R12, Mem(RBP, 16))
        with code.counted_down(R12):
            code.integer("mov", RSI, R10)
            code.integer("mov", RDI, R11)
            code.integer("mov", RCX, Mem(RBP, 24))
            for column in (Mem(RBP, 48), Mem(RBP, 56)):
                code.jump(apart, "ne", column, 8)
            copy_doubles(evaluator)
            code.jump(done)
            code.label(apart)
            with code.counted_down(RCX):
                code.integer("mov", RAX, Mem(RSI))
                code.integer("mov", Mem(RDI), RAX)
                code.integer("add", RSI, Mem(RBP, 48))
                code.integer("add", RDI, Mem(RBP, 56))
            code.label(done)
            code.integer("add", R10, Mem(RBP, 32))
            code.integer("add", R11, Mem(RBP, 40))
        code.integer("add", RBP, RECTANGLE)
    code.plain("ret")


def copy_doubles(evaluator: Evaluator) -> None:
    """Copy RCX doubles from RSI to RDI, and move both on."""

    def copy(step: int) -> None:
        register = Vec(0, 8 * step)
        evaluator.load(register, Mem(RSI))
        evaluator.store(Mem(RDI), register)

    in_steps(evaluator.code, (evaluator.registers.width, 1), copy, 8)


def in_steps(code: Assembler, steps: Sequence[int], body: Callable[[int], None], source_bytes: int) -> None:
    """Run the body, for each step, while at least that many of RCX numbers are left.

    source_bytes: how far RSI moves for a number; RDI moves by a double.
    """
    for step in steps:
        again = code.new_label()
        code.integer("sub", RCX, step)
        with code.unless("l"):
            code.label(again)
            body(step)
            code.integer("add", RSI, source_bytes * step)
            code.integer("add", RDI, 8 * step)
            code.integer("sub", RCX, step)
            code.jump(again, "ge")
        code.integer("add", RCX, step)
