"""A Clang of our own for a machine that has none: the one in the package `ziglang`, which has a lock of its own.

Its command, with everything that it adds to an engine's flags, is in `engines.kernel.toolchains`. The package serves
Linux with glibc; on macOS it has no linker, and Apple's Clang is one command away.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from zoomgrad.engines.kernel import toolchains
from zoomgrad.harness.machine import environments

LOCK = "clang"


def is_offered() -> bool:
    """Whether the package supports this system."""
    return sys.platform == "linux" and platform.libc_ver()[0] == "glibc" and platform.machine() in ("x86_64", "aarch64")


def use() -> None:
    """Use our Clang if it has been fetched, unless there is another one."""
    folder = environments.packages_folder(LOCK)
    # Asking the machine's compilers takes longer, so that comes last.
    if not os.environ.get(toolchains.CLANG) and environments.is_whole(folder) and not toolchains.has("clang"):
        toolchains.use_clang(_program(folder))


def fetch() -> None:
    """Fetch our Clang and use it. Raises NoEnvironment."""
    toolchains.use_clang(_program(environments.packages(LOCK)))


def _program(folder: Path) -> Path:
    return folder / "ziglang" / "zig"
