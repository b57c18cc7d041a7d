"""Let glibc keep freed memory, so that the next array of a lowering reuses it.

A stage of `recover` makes dozens of arrays as long as the tape, and frees most of them soon. glibc takes each large one
from the kernel and gives it back when it is freed, so every array pays again for page faults and for pages of zeros.
glibc raises its thresholds by itself as a program frees larger and larger blocks. We set the largest values that it
would choose, at once. We leave other C libraries alone, and processes whose environment sets thresholds.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt`, from malloc.h."""


@cache
def keep_freed_memory() -> None:
    """Keep up to 64 MiB of freed memory, in blocks of up to 32 MiB, from now on."""
    if any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return
    with suppress(ImportError, OSError, TypeError, AttributeError):
        import ctypes  # NumPy has imported it already

        libc = ctypes.CDLL(None)
        if hasattr(libc, "gnu_get_libc_version"):
            libc.mallopt(_MMAP_THRESHOLD, 32 << 20)
            libc.mallopt(_TRIM_THRESHOLD, 64 << 20)
