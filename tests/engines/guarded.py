"""Buffers whose end can't be overrun, and whose beginning shows what was written before it."""

import ctypes
import mmap


def at_the_end_of_a_page(count):
    """A buffer of doubles after NaN. The page after it can't be read or written."""
    size = -(-8 * max(1, count) // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, size + mmap.PAGESIZE)
    pages[: size - 8 * count] = b"\xff" * (size - 8 * count)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    assert protect(start + size, mmap.PAGESIZE, 0) == 0
    return memoryview(pages)[size - 8 * count : size].cast("d")


def is_intact(buffer):
    """Whether nothing was written before such a buffer."""
    before = len(buffer.obj) - mmap.PAGESIZE - buffer.nbytes
    return buffer.obj[:before] == b"\xff" * before
