"""Bytes -> executable memory. Pages are written first, then made executable, and never both at the same time."""

from __future__ import annotations

import ctypes
import mmap
import os
import stat
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.kernel.library import interface
from zoomgrad.engines.machine.encode import Assembler
from zoomgrad.engines.machine.target import ALTERNATIVE, check

PERF_FOLDER = Path("/tmp")  # noqa: S108  (where perf looks)
PERF_CONTROL = "ZOOMGRAD_PERF_CONTROL"
"""Environment variable that `zoomgrad profile` sets for a worker under perf."""


class Memory:
    """Executable pages with finished code, freed with the object."""

    def __init__(self, code: Assembler) -> None:
        """Raises Unavailable if the processor lacks the instructions, or if the system forbids executable pages."""
        check()  # other processors would end the process at the first call
        size = -(-len(code.code) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._pages[: len(code.code)] = bytes(code.code)  # PyPy accepts only bytes
        for name in code.functions:
            struct.pack_into("<Q", self._pages, code.labels[name], function_of_libm(name))
        self._view = ctypes.c_char.from_buffer(self._pages)
        self.start = ctypes.addressof(self._view)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        if protect(self.start, size, mmap.PROT_READ | mmap.PROT_EXEC):
            reason = os.strerror(ctypes.get_errno())
            raise Unavailable(f"the system forbids executable pages ({reason})", ALTERNATIVE)

    def bound(self, *buffers: Any) -> Callable[[], None]:
        """A call of the code with the addresses of two writable buffers. It keeps these and the pages alive."""
        ffi = interface()
        # Without True, PyPy's cffi silently copies a buffer that it can't address.
        first, second = (ffi.from_buffer("char[]", each, True) for each in buffers)
        call: Any = partial(ffi.cast("void (*)(void *, void *)", self.start), first, second)
        call.memory = self
        return call  # type: ignore[no-any-return]


def function_of_libm(name: str) -> int:
    """The address of a function of the C library for numbers, which gives the bits of Python's `math`."""
    with suppress(AttributeError):  # glibc keeps, for old programs, `__exp_finite`: exp without its wrapper
        find = ctypes.CDLL(None).dlvsym
        find.argtypes, find.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p), ctypes.c_void_p
        if address := find(None, f"__{name}_finite".encode(), b"GLIBC_2.15"):
            return int(address)
    for library in ("libm.so.6", None):
        with suppress(OSError, AttributeError):
            address = ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value
            if address:
                return address
    raise Unavailable(f"the C library has no function {name}", ALTERNATIVE)


def is_under_perf() -> bool:
    """Whether this process was started for perf: by CPython's `-X perf` or `-X perf_jit`, or by `zoomgrad profile`."""
    return PERF_CONTROL in os.environ or getattr(sys, "is_stack_trampoline_active", lambda: False)()


def write_symbols(start: int, symbols: Mapping[str, int], end: int) -> None:
    """Append symbols to the map file in which perf looks for the names of code that was made at run time.

    start: the address of the code. symbols: name -> offset; end: of the last one.

    Writes nothing if somebody else owns the file, or if it is not a plain file.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with suppress(OSError):
        descriptor = os.open(PERF_FOLDER / f"perf-{os.getpid()}.map", flags, 0o600)
        with os.fdopen(descriptor, "a", encoding="ascii") as file:
            facts = os.fstat(descriptor)
            if facts.st_uid != os.getuid() or not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1:
                return
            ordered = sorted(symbols.items(), key=lambda symbol: symbol[1])
            for (name, at), stop in zip(ordered, [*(at for _, at in ordered[1:]), end]):
                file.write(f"{start + at:x} {stop - at:x} machine code: {name}\n")
