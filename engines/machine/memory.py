"""Bytes -> executable memory. Pages are written first, then made executable, and never both at the same time."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.kernel.library import interface
from zoomgrad.engines.machine.target import ALTERNATIVE, check


class Memory:
    """Executable pages, freed with the object."""

    def __init__(self, code: bytes, of_libm: Mapping[str, int] = MappingProxyType({})) -> None:
        """of_libm: function of libm -> the offset of its address.

        Raises Unavailable if the processor lacks the instructions, or if the system forbids executable pages.
        """
        check()  # other processors would end the process at the first call
        size = -(-len(code) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._pages[: len(code)] = code
        for name, at in of_libm.items():
            struct.pack_into("<Q", self._pages, at, function_of_libm(name))
        self._view = ctypes.c_char.from_buffer(self._pages)
        self.start = ctypes.addressof(self._view)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        if protect(self.start, size, mmap.PROT_READ | mmap.PROT_EXEC):
            reason = os.strerror(ctypes.get_errno())
            raise Unavailable(f"the system forbids executable pages ({reason})", ALTERNATIVE)
        self.size = len(code)


def caller(address: int) -> Callable[[Any, Any], None]:
    """A function that calls machine code with the addresses of two writable buffers."""
    ffi = interface()
    function = ffi.cast("void (*)(void *, void *)", address)
    # Without True, PyPy's cffi silently copies a buffer that it can't address.
    return lambda first, second: function(*(ffi.from_buffer("char[]", each, True) for each in (first, second)))


def function_of_libm(name: str) -> int:
    """The address of a function of the C library for numbers, which gives the bits of Python's `math`."""
    for library in ("libm.so.6", None):
        with suppress(OSError, AttributeError):
            address = ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value
            if address:
                return address
    raise Unavailable(f"the C library has no function {name}", ALTERNATIVE)
