"""Build and load the pool, once for each process.

The pool has an object of its own, because its threads must outlive each kernel: a kernel can be unloaded at any time
between two calls, but code in which a thread sleeps can't.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

from zoomgrad.engines.kernel.building import build, loading
from zoomgrad.engines.kernel.c_tree import Include, unit
from zoomgrad.engines.kernel.kept import kept
from zoomgrad.engines.kernel.toolchains import Toolchain

FLAGS = ("-std=c99", "-O1")


def source() -> str:
    """The pool's C."""
    return unit([Include("threads/pool.h"), Include("threads/pool.c")])


@cache
def load(tool: Toolchain) -> int:
    """The address of the pool's `divide`. Raises BuildFailed."""
    text = source()
    recipe = ("threads", str(tool), *tool.command, *FLAGS, text)
    with kept("threads", recipe, build(tool, [text], FLAGS)) as built, loading():
        # Never unload it, not even at the end of the process, when threads still sleep in it.
        mode = ctypes.DEFAULT_MODE | getattr(os, "RTLD_NODELETE", 0)
        library = ctypes.CDLL(str(built.path), mode=mode)
    return ctypes.cast(library.divide, ctypes.c_void_p).value or 0
