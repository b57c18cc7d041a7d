"""An object -> how many fused multiply-add instructions a compiler put into it, read from its disassembly."""

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
    """Why there is no count, in a sentence's middle."""


def fused(path: Path) -> int:
    """Instructions in the object's code. Raises Uncounted."""
    tool = next(filter(None, map(shutil.which, DISASSEMBLERS)), None)
    if tool is None:
        raise Uncounted(f"there is no {' or '.join(DISASSEMBLERS)} on PATH: install binutils")
    command = [tool, "-d", "--no-show-raw-insn", str(path)]
    # Line by line: the text of a large object is tens of megabytes.
    with subprocess.Popen(  # noqa: S603  (a list of arguments)
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        found = count(process.stdout)
    if process.returncode:
        raise Uncounted(f"{Path(tool).name} ended with exit code {process.returncode}")
    return found


def count(lines: Iterable[str]) -> int:
    """Instructions in a disassembly."""
    return sum(1 for line in lines if _FUSED.search(line))
