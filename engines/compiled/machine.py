"""Facts of this machine that decide the form of code."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.asking import one_line

VECTORS = "ZOOMGRAD_VECTORS"
"""Environment variable: the most doubles in a vector, 2, 4 or 8. On x86-64, C that is compiled for this processor then
has instructions up to AVX2 for 4, and SSE for 2; `+fma` adds AVX. Machine code always has AVX2: 2 counts as 4."""

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Cores that this process may use."""


def widest(macros: frozenset[str]) -> int:
    """The doubles in the widest vector, by the macros that a compiler predefines."""
    return 8 if "__AVX512F__" in macros else 4 if "__AVX__" in macros else 2


def most_doubles() -> int:
    """The most doubles in a vector, as the user says. Raises Unavailable."""
    setting = os.environ.get(VECTORS) or "8"
    if setting not in ("2", "4", "8"):
        raise Unavailable(
            f"{VECTORS} is {one_line(setting, 40)!r}, but vectors have 2, 4 or 8 doubles",
            f"Unset {VECTORS} for the widest ones.",
        )
    return int(setting)


@cache
def second_level_cache() -> int:
    """Bytes of a core's second-level cache; 0 if the system does not say."""
    folder = Path("/sys/devices/system/cpu/cpu0/cache/index2")
    try:
        level, size = ((folder / name).read_text(encoding="ascii").strip() for name in ("level", "size"))
    except (OSError, ValueError):
        return 0
    return int(size[:-1]) << 10 if level == "2" and re.fullmatch(r"[1-9][0-9]{0,5}K", size) else 0
