"""The tape: a linearised graph, the contract between the front end and the back ends.

tape    = row*                        rows are numbered from 0; operands come before the rows that use them
row     = "input" index               the index counts the caller's inputs
        | "parameter" index           and parameters
        | "constant" number
        | op row [row] [number]       an op of the table, its operands, and its constant if it takes one
loss    = row
outputs = row*

A tape is stored as columns of machine integers, which NumPy and C read in place. `names` decodes the column of ops.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Optional, Union

from zoomgrad.engines.api import Number
from zoomgrad.engines.graph.ops import OPS

LEAVES = ("input", "parameter", "constant")
INPUT, PARAMETER, CONSTANT = range(len(LEAVES))
"""Codes of leaves in the column of ops. Ops follow, in the order of the op table."""

NONE = -1
"""Marks a missing operand, and a row without a number."""


def names() -> tuple[str, ...]:
    """Code -> name of a leaf or an op."""
    return (*LEAVES, *OPS)


def codes() -> dict[str, int]:
    """Name of a leaf or an op -> its code."""
    return {name: code for code, name in enumerate(names())}


Column = Union["array[int]", "memoryview[int]"]
"""32-bit integers, in an array or in the memory that the walk in C filled."""


@dataclass(frozen=True)
class Tape:
    """Rows as columns, in canonical order: depth-first post-order from the loss, then rows that only outputs need."""

    ops: Union[bytes, bytearray]
    """Row -> code."""
    left: Column
    """Row -> its left operand, or NONE."""
    right: Column
    index: Column
    """Row -> index of an input or parameter, or the position in `constants` of a constant or of an op's constant; NONE
    for other rows."""
    constants: Sequence[Number]
    """The numbers as the program gave them, so that the exponent 2 stays an int."""
    loss: int
    outputs: tuple[int, ...]
    inputs: int
    """Number of the caller's inputs. An input that the graph does not use has no row."""
    parameters: int

    def __len__(self) -> int:
        return len(self.ops)

    def number(self, row: int) -> Optional[Number]:
        """Index of an input or parameter, value of a constant, or constant of an op that takes one; None for others."""
        index = self.index[row]
        if index == NONE:
            return None
        return index if self.ops[row] in (INPUT, PARAMETER) else self.constants[index]

    def rows_of(self, code: int) -> Iterator[int]:
        row = self.ops.find(code)
        while row >= 0:
            yield row
            row = self.ops.find(code, row + 1)

    def bound(self, parameters: Sequence[float]) -> Tape:
        """The tape with these numbers as constants in place of its parameters."""
        index, constants = array("i", self.index), list(self.constants)
        for row in self.rows_of(PARAMETER):
            constants.append(parameters[index[row]])
            index[row] = len(constants) - 1
        ops = self.ops.replace(bytes([PARAMETER]), bytes([CONSTANT]))
        return replace(self, ops=ops, index=index, constants=constants, parameters=0)

    def read_by_outputs(self) -> set[int]:
        """Indices of the inputs that the outputs depend on."""
        needed = bytearray(len(self) + 1)  # the last byte is that of NONE
        for row in self.outputs:
            needed[row] = 1
        for row in range(len(self) - 1, -1, -1):
            if needed[row]:
                needed[self.left[row]] = needed[self.right[row]] = 1
        return {self.index[row] for row in self.rows_of(INPUT) if needed[row]}

    def lines(self) -> Iterator[str]:
        """The text form, as in golden files and `zoomgrad show`."""
        name = names()
        for row, (op, left, right) in enumerate(zip(self.ops, self.left, self.right)):
            operands = [f"%{operand}" for operand in (left, right) if operand != NONE]
            number = self.number(row)
            yield f"%{row} = {' '.join([name[op], *operands, *([] if number is None else [repr(number)])])}"
        yield f"loss %{self.loss}"
        if self.outputs:
            yield f"outputs {' '.join(f'%{row}' for row in self.outputs)}"
