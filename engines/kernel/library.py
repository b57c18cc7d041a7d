"""A shared object -> Kernel, through cffi in ABI mode: one binding for CPython and PyPy, with no extra compilation."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from typing import Any

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.columns import BYTES, DOUBLES, Column
from zoomgrad.engines.kernel.c_tree import read
from zoomgrad.engines.kernel.program import Buffers, Doubles, Passes, Stretch


@cache
def interface() -> Any:
    """cffi's view of `kernel.h`. Raises Unavailable if cffi is missing."""
    try:
        from zoomgrad.engines.kernel.generated.kernel_ffi import HEADER_SHA256, ffi
    except ImportError:
        raise Unavailable("cffi is not installed", "Install it with `pip install cffi`.") from None
    # C would read beyond a structure of the old size.
    if hashlib.sha256(read("kernel/kernel.h").encode()).hexdigest() != HEADER_SHA256:
        remedy = "Run `pytest tests/engines/compiled/test_interface.py --update-golden`."
        raise RuntimeError(f"kernel.h was edited\n  {remedy}")
    return ffi


@lru_cache
def quotients(divisor: float) -> tuple[array[float], float, float]:
    """`byte / divisor` for all bytes; `high` and `low`, if `byte * high + byte * low` has the bits of each, else zeros.

    `high` is 1 / divisor rounded to 45 bits (Veltkamp's way), so that the first product is exact. `low` is what `high`
    lacks, so that the sum is almost exact before it is rounded. Divisors below 256 have such numbers.
    """
    table = array("d", [byte / divisor for byte in range(256)])
    inverse = 1.0 / divisor
    high = 257.0 * inverse - (257.0 * inverse - inverse)
    low = (1.0 - high * divisor) / divisor
    are_sums = all(byte * high + byte * low == quotient for byte, quotient in enumerate(table))
    return (table, high, low) if are_sums else (table, 0.0, 0.0)


class Library:
    """Kernel over functions of kernel.h. Passes buffers without a copy."""

    def __init__(self, lib: Any, workspace: int) -> None:
        """lib: has the functions as attributes. It keeps them loaded."""
        self._workspace = workspace
        self._ffi = interface()
        self._lib = lib

    def workspace(self) -> array[float]:
        return array("d", [0.0]) * self._workspace

    def set_input(self, x: Doubles, columns: Sequence[Column], row: int) -> None:
        described, _alive = self.described(columns)
        self._lib.set_input(self._pointer(x), described, len(columns), row)

    def forward(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles) -> float:
        loss: float = self._lib.forward(*map(self._pointer, (x, p, w, y)))
        return loss

    def backward(self, x: Doubles, p: Doubles, w: Doubles, q: Doubles) -> None:
        self._lib.backward(*map(self._pointer, (x, p, w, q)))

    def bind(self, *buffers: Doubles) -> Passes:
        x, p, w, y, q = map(self._pointer, buffers)
        passes = partial(self._lib.forward, x, p, w, y), partial(self._lib.backward, x, p, w, q)
        for each in passes:
            # cffi's functions hold only an address, so the passes keep the library. This makes no call slower.
            each.library = self._lib  # type: ignore[attr-defined]
        return passes

    def update(self, p: Doubles, q: Doubles, rate: float, batch: int) -> None:
        self._lib.update(self._pointer(p), self._pointer(q), rate, batch)

    def train(self, buffers: Buffers, stretch: Stretch) -> int:
        # A structure holds only addresses, so these names keep the buffers alive until the call ends.
        pointers = [self._pointer(buffer) for buffer in buffers]
        columns, *counts, rates, losses, learns, y_step = stretch
        described, _alive = self.described(columns)
        rates, losses = self._pointer(rates), self._pointer(losses)
        fields = [described, len(columns), columns[0].rows, *counts, rates, losses, learns, y_step]  # as in `kernel.h`
        new = self._ffi.new
        return int(self._lib.train(new("struct buffers *", pointers), new("struct stretch *", fields)))

    def _pointer(self, buffer: Any) -> Any:
        # Require a writable buffer. Otherwise PyPy's cffi silently copies a buffer that it can't address.
        return self._ffi.from_buffer("double[]", buffer, True)

    def address(self, function: str) -> int:
        return int(self._ffi.cast("uintptr_t", getattr(self._lib, function)))

    def described(self, columns: Sequence[Column]) -> tuple[Any, list[Any]]:
        """Return the columns as C structures, and the buffers that must live as long as these."""
        alive = [self._ffi.from_buffer("char[]", memoryview(column.data).cast("B")) for column in columns]
        described = self._ffi.new("struct column[]", len(columns))
        for view, column, data in zip(described, columns, alive):
            view.data, view.width, view.divisor, view.kind = data, column.width, column.divisor, column.kind
            if view.kind == BYTES:
                table, view.high, view.low = quotients(column.divisor)
                view.quotients = self._pointer(table)
                alive.append(table)  # the cache may drop it: threads that need it first at once replace each other's
            if view.kind == DOUBLES and int(self._ffi.cast("uintptr_t", data)) % 8:
                raise ValueError(
                    "a column of doubles must begin at a multiple of 8 bytes\n"
                    "  Slice a buffer of bytes at multiples of 8 before casting it to 'd'."
                )
        return described, alive
