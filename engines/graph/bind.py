"""Tape and numbers -> the tape with these numbers as constants in place of its parameters."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace

from zoomgrad.engines.graph.passes import optimize
from zoomgrad.engines.graph.tape import CONSTANT, PARAMETER, Tape


def bind(tape: Tape, parameters: Sequence[float]) -> Tape:
    """Bind every parameter to its number, and fold what becomes constant. The numbers must be finite."""
    index, constants = array("i", tape.index), list(tape.constants)
    for row in tape.rows_of(PARAMETER):
        constants.append(parameters[index[row]])
        index[row] = len(constants) - 1
    ops = tape.ops.replace(bytes([PARAMETER]), bytes([CONSTANT]))
    return optimize(replace(tape, ops=ops, index=index, constants=constants, parameters=0))
