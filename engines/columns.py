"""Rows of input as buffers that compiled code reads without a copy."""

from __future__ import annotations

import sys
import types
from array import array
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple, Optional, Union

from zoomgrad.engines.arguments import finite, whole

MOST_COLUMNS = 32
"""A limit, because each call of an extension module keeps a table for every column."""

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
            label, inputs = self.data[row], [0.0] * self.width
            if label < self.width:
                inputs[label] = 1.0
            return inputs
        cells = self.data[row * self.width : (row + 1) * self.width]
        # Divide, because multiplying by the reciprocal differs in the last bit.
        return list(cells) if self.kind == DOUBLES else [cell / self.divisor for cell in cells]


Rows = Union[Column, "array[float]", bytes, memoryview, Sequence[Any]]
"""Any of these:

- a flat buffer of doubles or bytes, which holds the numbers of all rows one after the other;
- a matrix: a C-contiguous buffer with two dimensions, such as a NumPy array, with a row of inputs in each row;
- a list or tuple of matrices and Columns side by side, such as `(X, Y)`, where a flat buffer has one number per row;
- a list of rows, each a list of numbers, which is copied.
"""

WITHOUT_INPUTS = (Column(b"\0", 0, 1.0, one_hot=True),)
"""One row without inputs, for programs that have none: a label of no class."""


def described(rows: Rows, inputs: int, fewer: Optional[int] = None) -> tuple[Column, ...]:
    """Return the rows as Columns over the caller's buffers, which `columns` has not checked yet. Copies lists of rows.

    Raises TypeError and ValueError for lists that are not rows of `inputs` numbers, or all of `fewer`.
    """
    if isinstance(rows, Column):
        return (rows,)
    if not isinstance(rows, (list, tuple)):
        return (_described(rows, inputs),)
    if any(isinstance(part, Column) for part in rows) or (rows and _dimensions(rows[0]) == 2):
        return tuple(part if isinstance(part, Column) else _described(part, 1) for part in rows)
    if isinstance(rows, tuple) and rows and _dimensions(rows[0]) == 1:
        raise TypeError(
            "a tuple of flat buffers could hold rows or columns\n"
            "  Pass a list of rows, or columns as matrices: `X.reshape(-1, 1)`."
        )
    return (_numbers(rows, inputs, fewer),)


def _described(data: Any, width: int) -> Column:
    """A column of that width, unless the data is a matrix, which says its own."""
    return Column(data, memoryview(data).shape[1] if _dimensions(data) == 2 else width)  # type: ignore[index]


def _dimensions(data: Any) -> int:
    """Dimensions of a buffer; 0 if it is none, or one that Python code exports."""
    try:
        return 0 if isinstance(data, (list, tuple)) or _is_exported_by_python(data) else memoryview(data).ndim
    except (TypeError, ValueError, BufferError):
        return 0


def _numbers(rows: Sequence[Any], inputs: int, fewer: Optional[int]) -> Column:
    """A column with a copy of a list of rows. Its width is that of the first row."""
    numbers, width = array("d"), inputs
    for index, row in enumerate(rows):
        is_list = hasattr(type(row), "__len__") and not isinstance(row, (str, Mapping, Set))
        if not is_list or _dimensions(row) > 1:
            raise TypeError(
                f"row {index:,} must be a list of numbers, not {type(row).__name__}\n"
                "  Pass a list of rows: `[[…], […]]`."
            )
        try:
            # array() would read the bytes of a buffer as doubles, so a list comes first.
            cells = array("d", row if isinstance(row, (list, tuple)) else list(row))
        except TypeError as error:
            raise TypeError(f"row {index:,} does not hold numbers: {error}\n  Convert them with `float`.") from None
        except OverflowError:
            remedy = "The largest double is 1.8e308."
            raise ValueError(f"row {index:,} has a number that is too large\n  {remedy}") from None
        if not index and len(cells) == fewer:
            width = fewer
        if len(cells) != width:
            raise ValueError(_wrong_row(index, len(cells), width))
        numbers.extend(cells)
    return Column(numbers, width)


def _wrong_row(index: int, count: int, wanted: int) -> str:
    return f"row {index:,} has {_count(count)}, not {wanted:,}\n  Each row must have one number for each input."


def _count(numbers: int) -> str:
    return f"{numbers:,} number{'' if numbers == 1 else 's'}"


def columns(rows: Rows, inputs: int, fewer: Optional[int] = None) -> tuple[Column, ...]:
    """Return the rows as checked columns with `inputs` inputs together, or with `fewer`.

    Their widths are ints, and their data is flat and can't change size. Data other than `bytes` is wrapped in a
    memoryview, which stops CPython from resizing the buffer. PyPy still can, so no other thread may resize it during a
    call. Raises TypeError for data that is not a contiguous buffer of doubles or bytes, ValueError if sizes don't fit.
    """
    parts = described(rows, inputs, fewer)
    if len(parts) > MOST_COLUMNS:
        raise ValueError(
            f"there are {len(parts):,} columns, and the limit is {MOST_COLUMNS}\n"
            "  Put inputs of one kind side by side in one buffer."
        )
    # All numbers come first: their conversion may run the caller's code, which could resize data that was checked.
    parts = tuple(map(_with_numbers, parts))
    parts = tuple(map(_with_data, parts))
    counts = {column.rows for column in parts}
    if len(counts) != 1 or 0 in counts:
        raise ValueError(f"every column must hold the same number of rows, at least one; they hold {sorted(counts)}")
    width = sum(column.width for column in parts)
    if width not in (inputs, fewer):
        what = f"{inputs:,}" if fewer in (None, inputs) else f"{inputs:,} or the first {fewer:,}"
        raise ValueError(
            f"each row has {_count(width)} in its columns, and the program takes {what}\n"
            "  A row holds all inputs of one step, in the order of `compile`'s inputs."
        )
    return parts


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


def _with_numbers(column: Column) -> Column:
    width = whole(column.width, "a column's width", 0)
    if not width:
        raise ValueError("a column has 0 inputs per row; it must have at least one")
    divisor = finite(column.divisor, "a column's divisor")
    if not divisor:
        raise ValueError("a column's divisor must not be 0")
    return Column(column.data, width, divisor, bool(column.one_hot))


def _with_data(column: Column) -> Column:
    data, width, _, one_hot = column
    view = _view_of(data)
    if one_hot and view.format != "B":
        raise TypeError("class labels must be bytes\n  Pass them as `bytes`, or as a memoryview of format 'B'.")
    if view.ndim == 2:
        rows, own = view.shape  # type: ignore[misc]
        if own != (1 if one_hot else width):
            raise ValueError(f"a column's width is {width:,}, and each row of its matrix has {_count(own)}")
        # A view without items can't be cast.
        view = view.cast("B").cast(view.format) if rows else memoryview(array("d"))  # type: ignore[call-overload]
    if not one_hot and len(view) % width:
        raise ValueError(_wrong_row(len(view) // width, len(view) % width, width))
    # `bytes` can't change, and reading it directly is faster than through a view.
    return column._replace(data=data if type(data) is bytes else view)


def _is_exported_by_python(data: Any) -> bool:
    """Whether a Python method exports the buffer (PEP 688). It could resize another one after that was checked."""
    if sys.implementation.name != "cpython" or sys.version_info < (3, 12):
        return False
    return not isinstance(getattr(type(data), "__buffer__", None), (types.NoneType, types.WrapperDescriptorType))


def _view_of(data: Any) -> memoryview:
    """A memoryview of the data of a column. Raises TypeError, or ValueError if it can't be read, with the remedy."""
    if _is_exported_by_python(data):
        raise TypeError(
            f"a column must be a buffer of doubles or bytes, but {type(data).__name__} exports it from Python code\n"
            "  Pass a `memoryview` of it."
        )
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(
            f"a column must be a buffer of doubles or bytes, not {type(data).__name__}\n  {_remedy(data)}"
        ) from None
    except (ValueError, BufferError) as error:
        raise ValueError(f"a column can't be read as a buffer: {error}\n  {_remedy(data)}") from None
    if view.format not in ("d", "B") or view.ndim not in (1, 2) or not view.c_contiguous:
        raise TypeError(
            "a column must be a flat or two-dimensional, C-contiguous buffer of doubles or bytes; "
            f"its format is {view.format!r}, in {view.ndim} dimensions\n  {_remedy(data)}"
        )
    return view


def _remedy(data: Any) -> str:
    if hasattr(type(data), "__array__"):
        return "Convert it: `np.ascontiguousarray(X, dtype=np.float64)`."
    return "Pass `array.array('d', …)`, or `bytes` where bytes are accepted."
