"""Rows of input as buffers that compiled code reads without a copy."""

from __future__ import annotations

import sys
import types
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional, Union

from engines.arguments import finite, whole

MOST_COLUMNS = 16
"""A limit, because compiled code keeps a table for each column on its stack."""

DOUBLES, BYTES, CLASSES = range(3)
"""What a column's buffer holds: doubles, bytes to divide, or class labels to expand to one-hot inputs."""


class Column(NamedTuple):
    """Some inputs of every row, side by side with the other columns.

    data: a contiguous, row-major buffer of doubles or bytes. width: its inputs per row. divisor: bytes become
    `byte / divisor`. one_hot: each row is one byte, a class label, which becomes `width` inputs, all 0.0 except one.
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
        """Number of whole rows in the buffer."""
        return len(memoryview(self.data)) // (1 if self.one_hot else self.width)

    def first(self, rows: int) -> Column:
        """A column of the first `rows` rows, over the same buffer."""
        return self._replace(data=memoryview(self.data)[: rows * (1 if self.one_hot else self.width)])

    def values(self, row: int) -> list[float]:
        """The inputs of that row."""
        if self.one_hot:
            return [float(self.data[row] == index) for index in range(self.width)]
        cells = self.data[row * self.width : (row + 1) * self.width]
        # Divide, because multiplying by the reciprocal differs in the last bit.
        return list(cells) if self.kind == DOUBLES else [cell / self.divisor for cell in cells]


Rows = Union[Column, Sequence[Column], "array[float]", bytes, memoryview]
"""Columns side by side, or a plain buffer, which is one column with all inputs."""


def columns(rows: Rows, inputs: int) -> tuple[Column, ...]:
    """Return the rows as checked columns with `inputs` inputs together. Widths are ints, and data can't change size.

    Data other than `bytes` is wrapped in a memoryview, which stops CPython from resizing the buffer. PyPy still can, so
    no other thread may resize it during a call. Raises TypeError for data that is not a contiguous buffer of doubles
    or bytes, ValueError if sizes don't fit.
    """
    if isinstance(rows, Column):
        found: tuple[Column, ...] = (rows,)
    elif isinstance(rows, (list, tuple)) and all(isinstance(column, Column) for column in rows):
        found = tuple(rows)
    else:
        found = (Column(rows, inputs),)
    if len(found) > MOST_COLUMNS:
        raise ValueError(
            f"there are {len(found):,} columns, and the limit is {MOST_COLUMNS}\n"
            "  Put inputs of one kind side by side in one buffer."
        )
    found = tuple(map(_checked, found))
    width = sum(column.width for column in found)
    if width != inputs:
        raise ValueError(f"the columns have {width:,} inputs per row, the program takes {inputs:,}")
    counts = {column.rows for column in found}
    if len(counts) != 1 or 0 in counts:
        raise ValueError(f"every column must hold the same number of rows, at least one; they hold {sorted(counts)}")
    return found


def check_labels(columns: Sequence[Column], first_row: int = 0, rows: Optional[int] = None) -> None:
    """Raise ValueError if a class label, from `first_row` on, is not below its column's width.

    rows: how many rows to check, by default all. If they wrap around, every row is checked.
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
        raise ValueError("a column has 0 inputs per row; it must have at least one")
    divisor = finite(column.divisor, "a column's divisor")
    if not divisor:
        raise ValueError("a column's divisor must not be 0")
    if column.one_hot and view.format != "B":
        raise TypeError("class labels must be bytes\n  Pass them as `bytes`, or as a memoryview of format 'B'.")
    if not column.one_hot and len(view) % width:
        raise ValueError(f"a column holds {len(view):,} items, which is not a whole number of rows of {width:,}")
    # `bytes` can't change, and reading it directly is faster than through a view.
    return Column(column.data if type(column.data) is bytes else view, width, divisor, bool(column.one_hot))


_PYTHON_MAY_EXPORT = sys.implementation.name == "cpython" and sys.version_info >= (3, 12)
"""Whether a Python method can export a buffer (PEP 688). Such a method could resize another buffer after it was
checked."""


def view_of(data: Any, name: str, formats: str, *, writable: bool = False, length: Optional[int] = None) -> memoryview:
    """Return a memoryview of the data. Raises TypeError, or ValueError for a wrong length, with the remedy."""
    wanted = " or ".join({"d": "doubles", "B": "bytes"}[code] for code in formats)
    exporter = getattr(type(data), "__buffer__", None)
    if _PYTHON_MAY_EXPORT and exporter is not None and not isinstance(exporter, types.WrapperDescriptorType):
        raise TypeError(
            f"{name} must be a buffer of {wanted}, but {type(data).__name__} exports it from Python code\n"
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


_REMEDY = "Pass `array.array('d', …)`, or `bytes` where bytes are accepted."
