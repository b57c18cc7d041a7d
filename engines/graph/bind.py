"""Tape and numbers -> the tape with these numbers as constants in place of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engines.graph.passes import optimize
from engines.graph.tape import CONSTANT, PARAMETER, Tape


def bind(tape: Tape, parameters: Sequence[float]) -> Tape:
    """Bind every parameter to its number, and fold what becomes constant. Raises BrokenTape if a number is infinite."""
    numbers = {row: parameters[int(n)] if tape.ops[row] == PARAMETER else n for row, n in tape.numbers.items()}
    ops = [CONSTANT if op == PARAMETER else op for op in tape.ops]
    return optimize(replace(tape, ops=ops, numbers=numbers, parameters=0))
