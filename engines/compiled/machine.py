"""Facts of this machine that decide the form of code."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Cores that this process may use."""


@cache
def second_level_cache() -> int:
    """Bytes of a core's second-level cache; 0 if the system does not say."""
    folder = Path("/sys/devices/system/cpu/cpu0/cache/index2")
    try:
        level, size = ((folder / name).read_text(encoding="ascii").strip() for name in ("level", "size"))
    except (OSError, ValueError):
        return 0
    return int(size[:-1]) << 10 if level == "2" and re.fullmatch(r"[1-9][0-9]{0,5}K", size) else 0
