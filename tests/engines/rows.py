"""Rows as tuples -> Tape, to write tapes down in tests."""

from __future__ import annotations

from array import array

from zoomgrad.engines.graph.tape import INPUT, NONE, PARAMETER, Tape, codes


def from_rows(rows, *, loss, outputs, inputs, parameters):
    """rows: (name of a leaf or an op, left operand, right operand, number)."""
    code = codes()
    ops = bytearray()
    constants = []
    left, right, index = array("i"), array("i"), array("i")
    for name, a, b, number in rows:
        ops.append(code[name])
        left.append(a)
        right.append(b)
        if number is None:
            index.append(NONE)
        elif code[name] in (INPUT, PARAMETER):
            index.append(number)
        else:
            index.append(len(constants))
            constants.append(number)
    return Tape(ops, left, right, index, constants, loss, tuple(outputs), inputs, parameters)
