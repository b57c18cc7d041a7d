"""Rows of input as they lie in memory: what is handed to compiled code without a copy."""

from __future__ import annotations

import sys
import types
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional, Union

from engines.arguments import finite, whole

MOST_COLUMNS = 16
"""Compiled code keeps a table for each column on its stack."""

DOUBLES, BYTES, CLASSES = range(3)
"""What a column's buffer holds: doubles, bytes to be divided, or class labels to be spread out."""


class Column(NamedTuple):
    """Some inputs of every row, side by side with the other columns.

    data: a contiguous buffer of doubles, or of bytes, row-major. width: inputs that it makes a row. divisor: bytes
    become `byte / divisor`. one_hot: a row has one byte, a class label, which makes `width` inputs, all 0.0 but one.
    """

    data: Any
    width: int
    divisor: float = 1.0
    one_hot: bool = False

    @property
    def kind(self) -> int:
        if self.one_hot:
            return CLASSES
        return DOUBLES if memoryview(self.data).format == "d" else BYTES

    @property
    def rows(self) -> int:
        """How many whole rows the buffer holds."""
        return len(memoryview(self.data)) // (1 if self.one_hot else self.width)

    def first(self, rows: int) -> Column:
        """The column of the first so many rows, over the same buffer."""
        return self._replace(data=memoryview(self.data)[: rows * (1 if self.one_hot else self.width)])

    def values(self, row: int) -> list[float]:
        """That row's inputs."""
        if self.one_hot:
            return [float(self.data[row] == index) for index in range(self.width)]
        cells = self.data[row * self.width : (row + 1) * self.width]
        # Divided, not multiplied by the reciprocal: the two differ in the last bit.
        return list(cells) if self.kind == DOUBLES else [cell / self.divisor for cell in cells]


Rows = Union[Column, Sequence[Column], "array[float]", bytes, memoryview]
"""Columns side by side, or a bare buffer, which is a column of all inputs."""


def columns(rows: Rows, inputs: int) -> tuple[Column, ...]:
    """The rows as columns that make `inputs` inputs together, checked: widths are ints, and data can't change size.

    Data that is not `bytes` comes back as a memoryview of it, under which CPython's buffers can't be resized. PyPy's
    can: there no other thread may resize them during a call. Raises TypeError for data that is not a contiguous buffer
    of doubles or bytes, ValueError where sizes don't fit.
    """
    if isinstance(rows, Column):
        found: tuple[Column, ...] = (rows,)
    elif isinstance(rows, (list, tuple)) and all(isinstance(column, Column) for column in rows):
        found = tuple(rows)
    else:
        found = (Column(rows, inputs),)
    if len(found) > MOST_COLUMNS:
        raise ValueError(
            f"there are {len(found):,} columns, and {MOST_COLUMNS} at most can be read\n"
            "  Put inputs of one kind side by side in one buffer."
        )
    found = tuple(map(_checked, found))
    width = sum(column.width for column in found)
    if width != inputs:
        raise ValueError(f"the columns make {width:,} inputs a row, the program takes {inputs:,}")
    counts = {column.rows for column in found}
    if len(counts) != 1 or 0 in counts:
        raise ValueError(f"every column must hold the same number of rows, one at least; they hold {sorted(counts)}")
    return found


def check_labels(columns: Sequence[Column], first_row: int = 0, rows: Optional[int] = None) -> None:
    """Raise ValueError where a class label is not below its column's width, in the rows from `first_row` on.

    rows: how many to check, by default all. Where they wrap around, every row is checked.
    """
    for column in columns:
        if column.one_hot:
            stop = len(column.data) if rows is None else first_row + rows
            start = first_row if stop <= len(column.data) else 0
            labels = bytes(column.data[start:stop])
            beyond = labels.translate(None, bytes(range(min(column.width, 256))))
            if beyond:
                raise ValueError(
                    f"row {start + labels.index(beyond[:1]):,} has the class label {beyond[0]}; "
                    f"its column has {column.width} classes, counted from 0\n"
                    "  Widen the column, or correct the label."
                )


def _checked(column: Column) -> Column:
    view = view_of(column.data, "a column", "dB")
    width = whole(column.width, "a column's width", 0)
    if not width:
        raise ValueError("a column makes 0 inputs; it must make one at least")
    divisor = finite(column.divisor, "a column's divisor")
    if not divisor:
        raise ValueError("a column's divisor must not be 0")
    if column.one_hot and view.format != "B":
        raise TypeError("class labels must be bytes\n  Pass them as `bytes`, or as a memoryview of format 'B'.")
    if not column.one_hot and len(view) % width:
        raise ValueError(f"a column holds {len(view):,} items, which is not a whole number of rows of {width:,}")
    # What is in `bytes` stays as it is, and is read faster than through a view.
    return Column(column.data if type(column.data) is bytes else view, width, divisor, bool(column.one_hot))


_PYTHON_MAY_EXPORT = sys.implementation.name == "cpython" and sys.version_info >= (3, 12)
"""Whether a class can export a buffer by a method of Python's (PEP 688). Such a method could resize another buffer,
which has been measured already."""


def view_of(data: Any, name: str, formats: str, *, writable: bool = False, length: Optional[int] = None) -> memoryview:
    """The buffer behind it. Raises TypeError, or ValueError where the length is wrong, and says what would do."""
    wanted = " or ".join({"d": "doubles", "B": "bytes"}[code] for code in formats)
    exporter = getattr(type(data), "__buffer__", None)
    if _PYTHON_MAY_EXPORT and exporter is not None and not isinstance(exporter, types.WrapperDescriptorType):
        raise TypeError(
            f"{name} must be a buffer of {wanted}, and that of {type(data).__name__} is made by Python code\n"
            "  Pass a `memoryview` of it."
        )
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(f"{name} must be a buffer of {wanted}, not {type(data).__name__}\n  {_REMEDY}") from None
    except (ValueError, BufferError) as error:
        raise ValueError(f"{name} can't be read as a buffer: {error}\n  {_REMEDY}") from None
    if view.format not in tuple(formats) or view.ndim != 1 or not view.c_contiguous:
        raise TypeError(
            f"{name} must be a flat, contiguous buffer of {wanted}; "
            f"its format is {view.format!r}, in {view.ndim} dimensions\n  {_REMEDY}"
        )
    if writable and view.readonly:
        raise TypeError(f"{name} must be writable, and this {type(data).__name__} is not\n  {_REMEDY}")
    if length is not None and len(view) != length:
        raise ValueError(f"{name} must hold {length:,} {wanted}; it holds {len(view):,}\n  {_REMEDY}")
    return view


_REMEDY = "`array.array('d', …)` is one, and `bytes` where bytes will do."
