"""The buffers that compiled code writes to, and the checks that stop it from writing past the end.

C sees only addresses. A program holds an export of each of its buffers (the buffer protocol), so CPython refuses to
resize or release them. PyPy's arrays ignore exports, so every call checks their lengths there.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from typing import Any, NoReturn

EXPORTS_PIN = sys.implementation.name == "cpython"
"""Whether an exported array keeps its length."""

CACHE_LINE = 64
"""Bytes of a line of the processor's cache."""


class FixedArray(array):  # type: ignore[type-arg]  # CPython before 3.12 can't subscript it
    """Doubles that a program owns: an array of fixed length."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, slice):
            if not isinstance(value, array) or value.typecode != "d":
                value = array("d", list(value))
            places = len(range(*key.indices(len(self))))
            if len(value) != places:
                raise ValueError(
                    f"{len(value):,} numbers for {places:,} places of a program's buffer\n"
                    "  Its length is fixed: assign one number for each place."
                )
            if not places:  # CPython treats this as a change of length
                return
        super().__setitem__(key, value)

    def _refuse(self, *_: Any) -> NoReturn:
        raise BufferError(
            "a program's buffer can't be resized, because compiled code uses its address\n"
            "  Copy it first: `array.array('d', program.parameters)`."
        )

    __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = fromlist = frombytes = fromfile = _refuse


class Buffer:
    """One buffer of a program."""

    def __init__(self, name: str, numbers: Iterable[float]) -> None:
        self.name = name
        self.array = FixedArray("d", numbers)
        """The object that the caller sees and may write to."""
        self.length = len(self.array)
        self._export = memoryview(self.array)  # pins the length, see EXPORTS_PIN

    def overlaps(self, view: memoryview) -> bool:
        start, (ours, length) = address(view), self.array.buffer_info()
        return start < ours + 8 * length and ours < start + view.nbytes

    def ready(self) -> FixedArray:
        """Return the buffer for a call that begins now. Raises ValueError if its length has changed."""
        if not EXPORTS_PIN and len(self.array) != self.length:
            raise ValueError(f"{self.name} must hold {self.length:,} doubles; it holds {len(self.array):,}")
        return self.array


def zeros_at_cache_line(count: int) -> Any:
    """A view of zeros that begin at a cache line: a vector on two lines takes longer to load and to store."""
    whole = array("d", bytes(8 * count + CACHE_LINE))
    start = first_at_cache_line(whole)
    # Without a cast, because PyPy's cffi can't write to a slice of a view that is cast.
    return memoryview(whole)[start : start + count]


def first_at_cache_line(numbers: array[float]) -> int:
    """The index of the first number at the start of a cache line, where compiled code starts its workspace."""
    return -numbers.buffer_info()[0] % CACHE_LINE // numbers.itemsize


def address(view: memoryview) -> int:
    """Address of a view; 0 if it is empty, or read-only and there is no cffi."""
    import ctypes

    if not view.nbytes:
        return 0
    if not view.readonly:  # PyPy's cffi would silently copy some views
        return ctypes.addressof(ctypes.c_char.from_buffer(view))
    try:
        from zoomgrad.engines.kernel.generated.kernel_ffi import ffi
    except ImportError:
        return 0
    return int(ffi.cast("uintptr_t", ffi.from_buffer(view)))
