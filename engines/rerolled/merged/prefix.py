"""Graphs that begin another one: which rows a graph shares with the longest of its family.

A model reads a text from its first position to its last, so the graph of a short text begins that of a longer one. Both
tapes start with the same rows and finish with the same *end*: here, the mean of the losses so far. `shorten.py` makes
the loops of the short graph from those of the longer one: it cuts lanes and terms of rows that the short graph lacks.

Example: a weighted mean of two and of three inputs.

    %0 = parameter 0                            %0 = parameter 0
    %1 = input 0                                %1 = input 0
    %2 = * %0 %1                                %2 = * %0 %1
    %3 = input 1                                %3 = input 1
    %4 = * %0 %3                                %4 = * %0 %3
    %5 = + %2 %4                                %5 = + %2 %4
    %6 = constant 0.5                           %6 = input 2
    %7 = * %5 %6                                %7 = * %0 %6
    loss %7                                     %8 = + %5 %7
                                                %9 = constant 0.25
                                                %10 = * %8 %9
                                                loss %10

The first six rows are equal. The two rows of the end differ only in the constant and in one operand, the *total*: %5 in
one tape, %8 in the other. %8 adds a row to %5, and nothing else reads %5, so both totals are the same sum, with more or
fewer terms. So the loops differ only in counts, in that constant, and in where the inputs begin:

    forward:                                    forward:
      0: v[0] = p[0] * x[0] + p[0] * x[1]         0: v[0] = p[0] * x[0] + p[0] * x[1] + p[0] * x[2]
      1: v[1] = v[0] * 0.5                        1: v[1] = v[0] * 0.25
    backward:                                   backward:
      2: g[0] = 0.5 * 1.0                         2: g[0] = 0.25 * 1.0
    sink:                                       sink:
      3: q[0] += x[1] * g[0] + x[0] * g[0]        3: q[0] += x[2] * g[0] + x[1] * g[0] + x[0] * g[0]

Why is that right? Call rows of the longer tape *missing* if they are neither among the first ones, nor in the end, nor
the total.

- The first rows read no missing row. The total's sum has one term for each addition that the shorter tape lacks, and
  these are its last terms. `marked` keeps the total from becoming part of another sum.
- A row's consumers are those in the longer tape, in the same order, without the missing ones. What a missing row
  contributes is a factor times its gradient. Most factors read a missing value, and most gradients have a place, which
  the shorter graph lacks. So the terms to drop are those that read what is missing. But a gradient may be an alias of
  the total's, as that of %7 is, or a later stage may write it out in the one term that reads it. `_are_apart` makes
  sure that no first row gets a term of a missing row that reads nothing missing. Here, the term of %7 reads input 2.

All of this is checked, here for tapes and in `shorten.py` for loops. If a check fails, the graph is lowered like any
other.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Optional

from zoomgrad.engines.graph.expr import OUT, A, B
from zoomgrad.engines.graph.ops import OPS
from zoomgrad.engines.graph.tape import CONSTANT, INPUT, LEAVES, NONE, PARAMETER, Tape
from zoomgrad.engines.rerolled.recover.gradients import value_numbers
from zoomgrad.engines.rerolled.recover.sums import leaves

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.recover.sums import Ints


class Prefix(NamedTuple):
    """How a tape begins a longer one."""

    rows: int
    """The rows that both tapes have at their start."""
    end: int
    """The first row of the longer tape's end."""
    total: int
    """The longer tape's total."""
    additions: int
    """How many additions to the total the shorter tape lacks."""
    inputs: Ints
    """Input of the longer tape -> input of the shorter one, or NONE."""
    constants: tuple[float, ...]
    """The constants of the shorter tape's end."""
    tape: Tape
    """The shorter one."""


def prefixes(tapes: Sequence[Tape]) -> list[Optional[Prefix]]:
    """For each tape, how it begins the longest one, which begins itself. None if it does not.

    All prefixes have the end and the total of the first one.
    """
    longest = _Longest(max(tapes, key=len))
    parts = [longest.prefix(tape) if tape is not longest.tape else None for tape in tapes]
    first = next(filter(None, parts), None)
    if not first:
        return parts
    return [
        longest.itself(first)
        if tape is longest.tape
        else prefix
        if prefix and (prefix.end, prefix.total) == (first.end, first.total)
        else None
        for tape, prefix in zip(tapes, parts)
    ]


def marked(tape: Tape, end: int, total: int) -> tuple[Tape, list[float]]:
    """The tape with marks as the constants of its end, and with the total as another output. Also these marks.

    A mark is a number that occurs nowhere else in the tape, so the constant of each graph can replace it in the loops.
    The total is an output so that it gets a place and is not merged into another sum.
    """
    marks: list[float] = []
    index = array("i", bytes(tape.index))
    known = set(map(float, tape.constants))
    mark = 2.0  # 1.0 is the gradient of the loss
    for row in range(end, len(tape)):
        if tape.ops[row] == CONSTANT:
            while mark in known:
                mark += 1.0
            known.add(mark)
            index[row] = len(tape.constants) + len(marks)
            marks.append(mark)
    outputs = (*tape.outputs, total)
    return replace(tape, index=index, constants=[*tape.constants, *marks], outputs=outputs), marks


class _Longest:
    """The longest tape, with which the others are compared."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self._columns = _Columns(tape)

    def itself(self, other: Prefix) -> Prefix:
        """The tape as a prefix of itself, with the end and the total of another prefix."""
        import numpy as np

        inputs, constants = np.arange(self.tape.inputs), self._columns.constants(other.end)
        return Prefix(len(self.tape), other.end, other.total, 0, inputs, constants, self.tape)

    def prefix(self, tape: Tape) -> Optional[Prefix]:
        """How a tape begins this one; None if it does not."""
        import numpy as np

        size = len(tape)
        if size >= len(self.tape):
            return None
        short, longest = _Columns(tape), self._columns
        same = (
            (short.ops == longest.ops[:size])
            & (short.left == longest.left[:size])
            & (short.right == longest.right[:size])
            & ((short.number == longest.number[:size]) | (short.ops == INPUT))
        )
        rows = size if same.all() else int(same.argmin())
        end = len(self.tape) - (size - rows)
        totals = self._totals(tape, short, rows, end)
        additions = self._additions(*totals, rows, end) if totals else None
        if not totals or additions is None:
            return None
        inputs = np.full(self.tape.inputs, NONE)
        for at, part in ((slice(rows), slice(rows)), (slice(rows, None), slice(end, None))):
            is_input = short.ops[at] == INPUT
            inputs[longest.index[part][is_input]] = short.index[at][is_input]
        return Prefix(rows, end, totals[1], additions, inputs, short.constants(rows), tape)

    def _totals(self, tape: Tape, short: _Columns, rows: int, end: int) -> Optional[tuple[int, int]]:
        """The row of the total in a shorter tape, and in this one. None if their ends differ in anything else."""
        longest = self._columns
        if (short.ops[rows:] != longest.ops[end:]).any() or tape.parameters != self.tape.parameters:
            return None
        may_differ = (short.ops[rows:] == CONSTANT) | (short.ops[rows:] == INPUT)
        if ((short.number[rows:] != longest.number[end:]) & ~may_differ).any():
            return None
        pairs = [(tape.loss, self.tape.loss)]
        for column, whole in ((short.left, longest.left), (short.right, longest.right)):
            pairs += zip(column[rows:].tolist(), whole[end:].tolist())
        totals = {(row, whole) for row, whole in pairs if whole != (row if row < rows else row + end - rows)}
        outputs = tuple(row if row < rows else row + end - rows for row in tape.outputs)
        if len(totals) != 1 or outputs != self.tape.outputs[: len(outputs)]:
            return None
        return totals.pop()

    def _additions(self, our_total: int, total: int, rows: int, end: int) -> Optional[int]:
        """How many rows are added to our total until it is this tape's. None if these are not one sum, or not apart."""
        # A gradient of a parameter adds its terms one by one, and that of a longer total would come as one.
        if not 0 <= our_total < rows <= total < end or self.tape.ops[our_total] == PARAMETER:
            return None
        tape, added, row = self.tape, [], total
        while row != our_total:
            left, right = tape.left[row], tape.right[row]
            if tape.ops[row] not in _ADDITIONS or not our_total <= left or right < rows or self._readers[left] != 1:
                return None
            added.append(right)
            row = left
        return len(added) if self._are_apart(added, rows) else None

    def _are_apart(self, added: Sequence[int], rows: int) -> bool:
        """Whether every term that a missing row adds to a first row's gradient reads something missing.

        added: the missing rows that are added to the total. The walk starts from these, whose gradients are aliases of
        the total's, and goes on to operands if a factor reads nothing missing: then the operand's gradient need not,
        either.
        """
        tape, values = self.tape, self._values
        waiting, seen = [*added], set(added)
        while waiting:
            row = waiting.pop()
            leaf_to_row = {A: tape.left[row], B: tape.right[row], OUT: row}
            for operand, expr in zip((tape.left[row], tape.right[row]), _CONTRIBUTIONS.get(tape.ops[row], ())):
                read = [leaf_to_row[leaf] for leaf in leaves(expr) if leaf in leaf_to_row]
                if tape.ops[operand] in (INPUT, CONSTANT) or any(
                    values[each] >= rows and tape.ops[each] != CONSTANT for each in read
                ):
                    continue
                if operand < rows:
                    return False
                if operand not in seen:
                    seen.add(operand)
                    waiting.append(operand)
        return True

    @cached_property
    def _values(self) -> list[int]:
        """Row -> the row that computes its value."""
        values: list[int] = value_numbers(self.tape).tolist()
        return values

    @cached_property
    def _readers(self) -> Ints:
        """Row -> the number of times that operands are this row. The last entry is for NONE."""
        import numpy as np

        operands = np.concatenate([self._columns.left, self._columns.right]) % (len(self.tape) + 1)
        return np.bincount(operands, minlength=len(self.tape) + 1)


_ADDITIONS = {code for code, op in enumerate(OPS.values(), len(LEAVES)) if op.forward == A + B}
"""Codes of rows that add two others."""
_CONTRIBUTIONS = {code: op.contributions for code, op in enumerate(OPS.values(), len(LEAVES))}


class _Columns:
    """A tape as arrays."""

    def __init__(self, tape: Tape) -> None:
        import numpy as np

        self.ops = np.frombuffer(tape.ops, np.uint8)
        self.left, self.right, self.index = (
            np.frombuffer(column, np.int32) for column in (tape.left, tape.right, tape.index)
        )
        is_named = (self.ops == INPUT) | (self.ops == PARAMETER)
        self.number = np.full(len(tape), NONE, np.int64)
        """Row -> the index of an input or parameter; the bits of a constant, or of an op's constant; or NONE."""
        self.number[is_named] = self.index[is_named]
        numbered = np.flatnonzero((self.index != NONE) & ~is_named)
        self.number[numbered] = np.array(tape.constants, np.float64).view(np.int64)[self.index[numbered]]

    def constants(self, start: int) -> tuple[float, ...]:
        """The constants of the rows from `start` on."""
        import numpy as np

        return tuple(self.number[start:][self.ops[start:] == CONSTANT].view(np.float64).tolist())
