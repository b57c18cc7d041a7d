"""Rows of the caller's columns -> inputs, as kernel/rows.h reads them."""

from __future__ import annotations

from enum import IntEnum

from zoomgrad.engines.columns import BYTES
from zoomgrad.engines.machine.buffers.copies import copy_doubles, in_steps
from zoomgrad.engines.machine.encode import R8, R9, R10, RAX, RCX, RDI, RDX, RSI, Mem, Vec
from zoomgrad.engines.machine.expression import Evaluator
from zoomgrad.engines.machine.target import Word, word

READ_ROW, READ_COLUMNS = "read_row", "read_columns"
"""Routines that read row RAX into the numbers at RDI, from the stretch's columns or from the R8 columns at RDX."""


class Words(IntEnum):
    """The words of a column: the fields of `struct column`."""

    DATA, WIDTH, DIVISOR, KIND, HIGH, LOW, QUOTIENTS = range(7)


def write_rows(evaluator: Evaluator) -> None:
    """Write the routines.

    RDX goes through the columns, R8 counts them, RSI goes through a row's data, RCX counts inputs.
    """
    code = evaluator.code
    is_bytes, is_class, following = (code.new_label(stem) for stem in ("bytes", "class", "next"))
    code.label(READ_ROW)
    code.integer("mov", RDX, word(Word.COLUMNS))
    code.integer("mov", R8, word(Word.COLUMN_COUNT))
    code.label(READ_COLUMNS)
    code.integer("mov", R10, RAX)
    with code.counted_down(R8):
        code.integer("mov", RCX, _of_column(Words.WIDTH))
        code.integer("mov", RSI, R10)
        code.jump(is_bytes, "e", _of_column(Words.KIND), BYTES)
        code.jump(is_class, "g")
        code.integer("imul", RSI, RCX)
        code.integer("shl", RSI, 3)
        code.integer("add", RSI, _of_column(Words.DATA))
        copy_doubles(evaluator)
        code.jump(following)
        code.label(is_bytes)
        code.integer("imul", RSI, RCX)
        code.integer("add", RSI, _of_column(Words.DATA))
        _divide_bytes(evaluator)
        code.jump(following)
        code.label(is_class)
        code.integer("add", RSI, _of_column(Words.DATA))
        _spread_class(evaluator)
        code.label(following)
        code.integer("add", RDX, 8 * len(Words))
    code.plain("ret")


def _of_column(which: Words) -> Mem:
    return Mem(RDX, 8 * which)


def _divide_bytes(evaluator: Evaluator) -> None:
    """`byte / divisor` for each byte, as a sum of two products where the column says so."""
    code, width = evaluator.code, evaluator.registers.width
    number, divisor, high, low = (Vec(register, 8 * width) for register in range(4))
    one = Vec(0, 8)
    for register, which in ((divisor, Words.DIVISOR), (high, Words.HIGH), (low, Words.LOW)):
        evaluator.spread(register, _of_column(which))

    def in_products(count: int) -> None:
        whole, rest = Vec(0, 4 * width), Vec(4, 8 * width)
        for at in range(0, count, width):
            code.vector("vpmovzxbd", whole, None, Mem(RSI, at))
            code.vector("vcvtdq2pd", number, None, whole)
            code.vector("vmulpd", rest, number, low)
            code.vector("vmulpd", number, number, high)
            code.vector("vaddpd", number, number, rest)
            evaluator.store(Mem(RDI, 8 * at), number)

    def single(_: int) -> None:
        code.integer("movzx", RAX, Mem(RSI))
        code.vector("vcvtsi2sd", one, divisor._replace(size=8), RAX)
        code.vector("vdivsd", one, one, divisor._replace(size=8))
        evaluator.store(Mem(RDI), one)

    with code.unless("e", _of_column(Words.HIGH), 0):
        in_steps(code, (4 * width, width), in_products, 1)
    in_steps(code, (1,), single, 1)


def _spread_class(evaluator: Evaluator) -> None:
    """A label becomes inputs that are all 0.0, except the label's own, which is 1.0."""
    code, zero, one = evaluator.code, Vec(0, 8), Vec(1, 8)
    code.integer("movzx", RAX, Mem(RSI))
    code.integer("mov", R9, RDI)
    evaluator.clear(zero)
    in_steps(code, (1,), lambda _: evaluator.store(Mem(RDI), zero), 0)
    with code.unless("ge", RAX, _of_column(Words.WIDTH)):
        evaluator.load(one, evaluator.constant(1.0, 1))
        evaluator.store(Mem(R9, 0, RAX, 8), one)
