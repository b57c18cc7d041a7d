"""Object file -> number of fused multiply-add instructions in its disassembly."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

DISASSEMBLERS = ("objdump", "llvm-objdump")

_FUSED = re.compile(
    r":\s+("
    r"v?fn?m(add|sub)\w*"  # x86-64: vfmadd231sd, vfnmsub132pd; AArch64 and RISC-V: fmadd, fnmsub
    r"|fml[as]"  # AArch64, over vectors
    r")[\s.]"
)


class Uncounted(Exception):
    """The instructions can't be counted. The text gives the reason and fits into a sentence."""


def fused(path: Path) -> int:
    """Count the fused instructions in an object. Raises Uncounted."""
    tool = next(filter(None, map(shutil.which, DISASSEMBLERS)), None)
    if tool is None:
        raise Uncounted(f"there is no {' or '.join(DISASSEMBLERS)} on PATH: install binutils")
    command = [tool, "-d", "--no-show-raw-insn", str(path)]
    # Read line by line, because the disassembly of a large object takes tens of megabytes.
    with subprocess.Popen(  # noqa: S603  (a list of arguments)
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        found = count(process.stdout)
    if process.returncode:
        raise Uncounted(f"{Path(tool).name} ended with exit code {process.returncode}")
    return found


def count(lines: Iterable[str]) -> int:
    """Count the fused instructions in a disassembly."""
    return sum(1 for line in lines if _FUSED.search(line))
