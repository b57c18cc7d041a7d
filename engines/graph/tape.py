"""The tape: a linearised graph, the contract between the front end and the back ends.

tape    = row*                        rows are numbered from 0; operands come before the rows that use them
row     = "input" index               the index counts the caller's inputs
        | "parameter" index           and parameters
        | "constant" number
        | op row [row] [number]       an op of the table, its operands, and its constant if it takes one
loss    = row
outputs = row*
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engines.api import Number

INPUT, PARAMETER, CONSTANT = "input", "parameter", "constant"
LEAVES = (INPUT, PARAMETER, CONSTANT)

NONE = -1
"""Marks a missing operand."""


@dataclass(frozen=True)
class Tape:
    """Rows as columns, in canonical order: depth-first post-order from the loss, then rows that only outputs need."""

    ops: list[str]
    left: list[int]
    right: list[int]
    numbers: dict[int, Number]
    """Row -> index of an input or parameter, value of a constant, or constant of an op that takes one."""
    loss: int
    outputs: tuple[int, ...]
    inputs: int
    """Number of the caller's inputs. An input that the graph does not use has no row."""
    parameters: int

    def __len__(self) -> int:
        return len(self.ops)

    def lines(self) -> Iterator[str]:
        """The text form, as in golden files and `zoomgrad show`."""
        for row, (op, left, right) in enumerate(zip(self.ops, self.left, self.right)):
            operands = [f"%{operand}" for operand in (left, right) if operand != NONE]
            number = [repr(self.numbers[row])] if row in self.numbers else []
            yield f"%{row} = {' '.join([op, *operands, *number])}"
        yield f"loss %{self.loss}"
        if self.outputs:
            yield f"outputs {' '.join(f'%{row}' for row in self.outputs)}"
