"""What every reader in this package returns, and what it raises when it can't."""

from array import array
from typing import NamedTuple, Union

Buffer = Union[bytes, memoryview, "array[float]"]


class Unavailable(Exception):
    """Data that is not on this machine: why, and the command or setting that brings it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}\n  {remedy}")
        self.reason = reason
        self.remedy = remedy


class Dataset(NamedTuple):
    """Rows of features with their targets, row-major.

    features: `rows * width` numbers: bytes, which `divisor` turns into doubles (`byte / divisor`), or doubles.
    targets: with `classes`, `rows` class labels as bytes, else `rows * target_width` doubles.
    train_rows: how many of the rows, from the first, are for training; the rest is held out.
    """

    name: str
    features: Buffer
    width: int
    divisor: float
    targets: Buffer
    classes: int
    target_width: int
    train_rows: int

    @property
    def rows(self) -> int:
        """How many rows there are, for training and held out."""
        return len(self.features) // self.width

    def inputs(self, row: int) -> "array[float]":
        """One row as doubles: its `width` features, then its targets (one-hot where they are classes).

        Raises IndexError outside 0 to `rows` - 1: wrapping around is the caller's.
        """
        # Slices would answer with an empty row, and the training would go on without data.
        if not 0 <= row < self.rows:
            raise IndexError(f"{self.name}: row {row:,} is not one of its {self.rows:,} rows, 0 to {self.rows - 1:,}")
        start = row * self.width
        features = self.features[start : start + self.width]
        if isinstance(features, array):
            values = array("d", features)
        else:
            # Divided, not multiplied by the reciprocal: the two differ in the last bit.
            values = array("d", [byte / self.divisor for byte in features])
        if self.classes:
            one_hot = array("d", bytes(8 * self.classes))
            one_hot[int(self.targets[row])] = 1.0
            values.extend(one_hot)
        else:
            values.extend(array("d", self.targets[row * self.target_width : (row + 1) * self.target_width]))
        return values
