"""Results of many steps: a row of numbers for each."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Union, overload


class Table(Sequence[Any]):
    """Rows of doubles of one width. `table[i]` and iteration give each row as an array.

    `np.asarray(table)` is a matrix over the same memory.
    """

    __slots__ = ("_numbers", "_width")

    def __init__(self, numbers: array[float], width: int) -> None:
        self._numbers = numbers
        self._width = width

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and numbers in each."""
        return len(self), self._width

    def __len__(self) -> int:
        return len(self._numbers) // self._width

    @overload
    def __getitem__(self, index: int) -> array[float]: ...
    @overload
    def __getitem__(self, index: slice) -> list[array[float]]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[array[float], list[array[float]]]:
        found = range(len(self))[index]
        return self._row(found) if isinstance(found, int) else list(map(self._row, found))

    def _row(self, index: int) -> array[float]:
        return self._numbers[index * self._width : (index + 1) * self._width]

    def tolist(self) -> list[list[float]]:
        """The rows as lists."""
        return [row.tolist() for row in self]

    @property
    def __array_interface__(self) -> Mapping[str, Any]:
        """What NumPy asks for, so that it makes no copy."""
        order = "<" if sys.byteorder == "little" else ">"
        return {"version": 3, "shape": self.shape, "typestr": f"{order}f8", "data": self._numbers}

    def __repr__(self) -> str:
        return f"Table({self.tolist()!r})"
