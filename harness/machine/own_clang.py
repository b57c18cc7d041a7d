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

LOCK = "clang"


def is_offered() -> bool:
    """Whether the package supports this system."""
    return sys.platform == "linux" and platform.libc_ver()[0] == "glibc" and platform.machine() in ("x86_64", "aarch64")


def use() -> bool:
    """Use our Clang if it has been fetched, unless there is another one. Return whether there is any."""
    if os.environ.get(toolchains.CLANG) or toolchains.has("clang"):
        return True
    from zoomgrad.harness.machine import environments  # late: uv and filelock take a twentieth of a second

    folder = environments.packages_folder(LOCK)
    if environments.is_whole(folder):
        toolchains.use_clang(_program(folder))
    return environments.is_whole(folder)


def fetch() -> None:
    """Fetch our Clang and use it. Raises NoEnvironment."""
    from zoomgrad.harness.machine import environments

    toolchains.use_clang(_program(environments.packages(LOCK)))


def _program(folder: Path) -> Path:
    return folder / "ziglang" / "zig"
