"""The type that every reader in this package returns, and the error that it raises."""

from array import array
from typing import NamedTuple, Union

Buffer = Union[bytes, memoryview, "array[float]"]


class Unavailable(Exception):
    """The data is not on this machine. Carries the reason, and the command or setting that fixes it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}\n  {remedy}")
        self.reason = reason
        self.remedy = remedy


class Dataset(NamedTuple):
    """Rows of features with their targets, row-major.

    features: `rows * width` doubles, or bytes that become `byte / divisor`.
    targets: `rows` class labels as bytes if there are `classes`, else `rows * target_width` doubles.
    train_rows: number of rows for training, from the first; the rest are held out.
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
        """Number of rows, including held-out ones."""
        return len(self.features) // self.width

    def inputs(self, row: int) -> "array[float]":
        """Return one row as doubles: its `width` features, then its targets (one-hot if they are classes).

        Raises IndexError outside 0 to `rows` - 1. The caller wraps around.
        """
        # A slice would return an empty row, and training would go on without data.
        if not 0 <= row < self.rows:
            raise IndexError(f"{self.name}: row {row:,} is not one of its {self.rows:,} rows, 0 to {self.rows - 1:,}")
        start = row * self.width
        features = self.features[start : start + self.width]
        if isinstance(features, array):
            values = array("d", features)
        else:
            # Divide, because multiplying by the reciprocal differs in the last bit.
            values = array("d", [byte / self.divisor for byte in features])
        if self.classes:
            one_hot = array("d", bytes(8 * self.classes))
            one_hot[int(self.targets[row])] = 1.0
            values.extend(one_hot)
        else:
            values.extend(array("d", self.targets[row * self.target_width : (row + 1) * self.target_width]))
        return values
