"""Keep freed memory while a graph is lowered, so that the next array reuses it.

A stage of `recover` makes a hundred arrays as long as the tape, and frees most of them soon. glibc takes each large one
from the kernel and gives it back when it is freed, so every array pays again for page faults and for pages of zeros.
Within `kept`, glibc keeps all freed memory. After it, glibc keeps up to 64 MiB, which the program's buffers then reuse.

glibc can't report its thresholds, so they can't be restored. Afterwards we set the largest values that glibc would
choose by itself. We leave other C libraries alone, and processes whose environment sets thresholds.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
"""Parameters of `mallopt`, from malloc.h."""
_LARGEST = (1 << 31) - 1
_KEEP = {_MMAP_THRESHOLD: _LARGEST, _TRIM_THRESHOLD: _LARGEST, _TOP_PAD: 16 << 20}
_AFTERWARDS = {_MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 64 << 20, _TOP_PAD: 128 << 10}


class _Heap:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Keep freed memory until the last of these blocks ends, in all threads."""
        libc = _glibc()
        if libc is None:
            yield
            return
        with self._lock:
            self._blocks += 1
            if self._blocks == 1:
                _set(libc, _KEEP)
        try:
            yield
        finally:
            with self._lock:
                self._blocks -= 1
                if not self._blocks:
                    _set(libc, _AFTERWARDS)


HEAP = _Heap()


def _set(libc: Any, options: dict[int, int]) -> None:
    for option, value in options.items():
        libc.mallopt(option, value)


@cache
def _glibc() -> Any:
    """glibc; None for another C library, and if the environment sets thresholds."""
    if any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return None
    try:
        import ctypes  # NumPy has imported it already

        libc = ctypes.CDLL(None)
        return libc if hasattr(libc, "gnu_get_libc_version") and hasattr(libc, "mallopt") else None
    except (ImportError, OSError, TypeError):
        return None
