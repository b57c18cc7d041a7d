"""The state of training: 8-byte words that Python and machine code both read and change.

Python writes them before a stretch and reads them after it. `T` holds their address while code runs.
"""

from __future__ import annotations

from enum import IntEnum

from zoomgrad.engines.machine.encode import Mem
from zoomgrad.engines.machine.target import T


class Word(IntEnum):
    """The words, in order. Addresses point to doubles."""

    STEPS = 0
    STEP = 1
    """The number of recorded losses, all finite."""
    ROWS = 2
    ROW = 3
    """The next row."""
    BATCH = 4
    TAKEN = 5
    """Rows since the last update."""
    RATES = 6
    """The address of the next update's rate."""
    LOSSES = 7
    OUTPUTS = 8
    """The address of the outputs of step 0."""
    OUTPUTS_APART = 9
    """Bytes from a step's outputs to the next one's."""
    COLUMNS = 10
    """The address of the columns' descriptions."""
    COLUMN_COUNT = 11
    RATE = 12
    """A double: the rate of the current or waiting update."""
    DUE = 13
    KEPT = 14
    ZERO = 15
    """Whether all gradients are zero."""
    COUNT = 16
    """The number of rows taken together."""
    CURRENT = 17
    """The number of the current one of these rows."""
    PARAMETERS = 18
    GRADIENTS = 19
    SIZE = 20
    """A double: the rows of a batch."""
    BOUND = 21
    """A double: a bound on the magnitude of the weights that zero inputs would skip."""


def word(which: Word) -> Mem:
    """The word as an operand."""
    return Mem(T, 8 * which)


class Column(IntEnum):
    """The words of a column's description."""

    DATA = 0
    WIDTH = 1
    KIND = 2
    """DOUBLES, BYTES or CLASSES."""
    ROW_BYTES = 3
    DIVISOR = 4
    """A double."""
    HIGH = 5
    LOW = 6
    """Doubles: for each byte, `byte * HIGH + byte * LOW` is `byte / DIVISOR`. HIGH is 0 if there are none."""


COLUMN_BYTES = 8 * len(Column)
