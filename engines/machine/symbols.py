"""Symbols for profilers: lines of the map file in which perf looks for the names of code that was made at run time.

They are written only if this process was started for perf: by CPython's `-X perf` or `-X perf_jit`, which write to the
same file, or by `zoomgrad profile`.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

FOLDER = Path("/tmp")  # noqa: S108  (where perf looks)
CONTROL = "ZOOMGRAD_PERF_CONTROL"
"""Environment variable that `zoomgrad profile` sets for a worker under perf."""


def is_wanted() -> bool:
    """Whether perf watches this process."""
    return CONTROL in os.environ or getattr(sys, "is_stack_trampoline_active", lambda: False)()


def write_symbols(start: int, symbols: Mapping[str, int], end: int) -> None:
    """Append the symbols of code at an address. symbols: name -> offset; end: of the last one.

    Writes nothing if somebody else owns the file, or if it is not a plain file.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with suppress(OSError):
        descriptor = os.open(FOLDER / f"perf-{os.getpid()}.map", flags, 0o600)
        with os.fdopen(descriptor, "a", encoding="ascii") as file:
            facts = os.fstat(descriptor)
            if facts.st_uid != os.getuid() or not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1:
                return
            ordered = sorted(symbols.items(), key=lambda symbol: symbol[1])
            for (name, at), stop in zip(ordered, [*(at for _, at in ordered[1:]), end]):
                file.write(f"{start + at:x} {stop - at:x} machine code: {name}\n")
