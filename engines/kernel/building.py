"""C -> a shared object, built by a compiler in isolation.

A build runs in a new directory of mode 0700, without a shell, in a separate process group, under limits of time and
memory. A compiler that fails, hangs or is killed raises BuildFailed with the end of its output.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from engines import asking
from engines.kernel.toolchains import Toolchain, linker

SECONDS = 1800.0
"""Default time limit for a compiler, in seconds."""

BYTES = 16 << 30
"""Default limit of a compiler's address space: Clang 19 -O1 took 5.9 GB for one function of 120,000 rows."""

TAIL_CHARACTERS = 800

LARGEST_FILE_BYTES = 4 << 30
"""Largest file that a compiler may write, its output included."""

LOG_BYTES = 16 << 20
"""How much of the end of a compiler's output is read."""

DISK_TROUBLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)

PLACE = "Point TMPDIR at a writable folder with free space."

FOLDER_PREFIX = "zoomgrad-build-"
"""Prefix of a build directory's name, by which tools that show paths recognise our objects."""


class BuildFailed(Exception):
    """A build produced no object. Carries the reason, the end of the compiler's output, and the remedy."""

    def __init__(self, reason: str, output: str, remedy: str) -> None:
        output = output.strip()
        tail = output if len(output) <= TAIL_CHARACTERS else f"…{output[-TAIL_CHARACTERS:]}"
        # Compilers quote sources and names, and a terminal must not obey the control characters in them.
        tail = "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in tail)
        self.reason = f"{reason}: {tail or 'it printed nothing'}"
        self.remedy = remedy
        super().__init__(f"{self.reason}\n  {remedy}")


class TookTooLong(BuildFailed):
    """A compiler hit its time limit."""


@dataclass(frozen=True)
class Built:
    """A shared object in its private directory."""

    path: Path
    size: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What a cache keeps with the object: names and values that JSON can hold."""


@dataclass(frozen=True)
class Compiled:
    """A translation unit's object in its private directory, and the compiler's output."""

    path: Path
    output: str


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """A new directory that only this user can enter, removed at the block's end. Raises BuildFailed."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))  # its mode is 0700
    except OSError as error:
        raise BuildFailed("no folder can be created for the build", str(error), PLACE) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write(file: Path, content: bytes) -> None:
    """Write a file in a private folder. Raises BuildFailed if that fails."""
    try:
        file.write_bytes(content)
    except OSError as error:
        raise BuildFailed(f"{file.name} could not be written", str(error), PLACE) from None


@contextlib.contextmanager
def build(
    tool: Toolchain,
    units: Sequence[str],
    flags: Sequence[str],
    *,
    seconds: float = SECONDS,
    most_bytes: int = BYTES,
    waiting: Optional[Waiting] = None,
) -> Iterator[Built]:
    """Compile the translation units in parallel and link them. The object is removed at the block's end.

    waiting: compilers of this tool with these flags. Raises BuildFailed.
    """
    with private_folder() as folder:
        target = folder / "program.so"
        limits = _Limits(folder, seconds, most_bytes)
        its_linker = linker(tool)
        if waiting:
            objects = waiting.compile(units)
        else:
            files = [folder / f"unit_{index}.c" for index in range(len(units))]
            for file, unit in zip(files, units):
                write(file, unit.encode("ascii"))
            if len(files) == 1 and not its_linker:
                objects = []
                limits.run([[*tool.command, *flags, "-fPIC", *tool.link_flags, "-o", str(target), str(files[0])]])
            else:
                objects = [file.with_suffix(".o") for file in files]
                limits.run(
                    [[*tool.command, *flags, "-fPIC", "-c", "-o", str(o), str(c)] for c, o in zip(files, objects)]
                )
        if objects:
            _check_there(tool, objects)
            limits.run([[*(its_linker or (*tool.command, *tool.link_flags)), "-o", str(target), *map(str, objects)]])
        _check_there(tool, [target])
        _check_whole(tool, target)
        yield Built(target, target.stat().st_size)


def _check_there(tool: Toolchain, files: Sequence[Path]) -> None:
    if not all(file.is_file() for file in files):
        command = Path(tool.command[0]).name
        raise BuildFailed(f"{command} reported success but wrote no object", "", "Run `zoomgrad doctor`.")


def _check_whole(tool: Toolchain, file: Path) -> None:
    """Raise BuildFailed for an ELF object that lacks its last part, the section table.

    On a full disk, TCC cuts its object short and reports success. Loading that object would kill the process by SIGBUS.
    """
    with file.open("rb") as stream:
        header, size = stream.read(64), stream.seek(0, os.SEEK_END)
    if len(header) < 64 or header[:4] != b"\x7fELF":
        return
    order = "<" if header[5] == 1 else ">"
    offset_at, count_at, number = (0x28, 0x3A, "Q") if header[4] == 2 else (0x20, 0x2E, "I")
    (offset,) = struct.unpack_from(f"{order}{number}", header, offset_at)
    entry_bytes, entries = struct.unpack_from(f"{order}2H", header, count_at)
    end = offset + entry_bytes * entries
    if size < end:
        name = Path(tool.command[0]).name
        raise BuildFailed(f"{name} wrote {size:,} of {end:,} bytes of the object, but reported success", "", PLACE)


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """Raise BuildFailed if the system refuses to load an object in this block."""
    try:
        yield
    except (OSError, ImportError, UnicodeError) as error:  # a path may be undecodable
        remedy = "Point TMPDIR at another folder: its file system may be mounted noexec, or its name may not be text."
        raise BuildFailed("the object can't be loaded", str(error), remedy) from None


@contextlib.contextmanager
def compile_unit(
    tool: Toolchain, unit: str, flags: Sequence[str], *, seconds: float = SECONDS, most_bytes: int = BYTES
) -> Iterator[Compiled]:
    """Compile one translation unit as `build` does, without linking. The folder is removed at the block's end.

    Any other files that the flags request are next to the object. Raises BuildFailed.
    """
    with private_folder() as folder:
        file, target = folder / "unit.c", folder / "unit.o"
        write(file, unit.encode("ascii"))
        command = [*tool.command, *flags, "-fPIC", "-c", "-o", str(target), str(file)]
        (output,) = _Limits(folder, seconds, most_bytes).run([command])
        yield Compiled(target, output)


class Waiting:
    """Compilers that were started before there was anything to compile. Each reads a unit from its standard input.

    Clang takes 30 ms to start, most of it to link LLVM. A compiler that waits has done this on another core, while
    Python traced and lowered the graph.
    """

    def __init__(self, tool: Toolchain, flags: Sequence[str], folder: Path) -> None:
        self._command = [*tool.command, *flags, "-fPIC", "-c", "-x", "c", "-"]
        self._group = _Group(_Limits(folder, SECONDS, BYTES))
        self._objects: list[Path] = []
        self._folder = folder

    def add(self) -> None:
        """Start another compiler. Raises BuildFailed."""
        self._objects.append(self._folder / f"unit_{len(self._objects)}.o")
        self._group.start([*self._command, "-o", str(self._objects[-1])], reads=True)

    def compile(self, units: Sequence[str]) -> list[Path]:
        """Compile the units, once. Returns their objects, which `end` removes. Raises BuildFailed."""
        while len(self._objects) < len(units):
            self.add()
        self._group.finish([unit.encode("ascii") for unit in units])
        return self._objects[: len(units)]

    def end(self) -> None:
        """Kill the compilers that still run."""
        self._group.end()


@contextlib.contextmanager
def waiting(tool: Toolchain, flags: Sequence[str], count: int = 1) -> Iterator[Optional[Waiting]]:
    """Start compilers. They are killed at the block's end, and so are those that were added.

    None if the compiler links too, or does not start.
    """
    with contextlib.ExitStack() as stack:
        started = None
        if linker(tool):
            with contextlib.suppress(BuildFailed):  # `build` will try again, and say why it fails
                compilers = Waiting(tool, flags, stack.enter_context(private_folder()))
                stack.callback(compilers.end)
                for _ in range(count):
                    compilers.add()
                started = compilers
        yield started


@dataclass(frozen=True)
class _Limits:
    """What commands may use, and the folder that they run in."""

    folder: Path
    seconds: float
    most_bytes: int

    def run(self, commands: Sequence[Sequence[str]]) -> list[str]:
        """Run commands in parallel and return their outputs. Raises BuildFailed."""
        group = _Group(self)
        try:
            for command in commands:
                group.start(command)
            return group.finish()
        finally:
            group.end()


class _Group:
    """Commands that run in parallel. If one fails or takes too long, all of them are killed."""

    def __init__(self, limits: _Limits) -> None:
        self._limits = limits
        self._processes: list[subprocess.Popen[bytes]] = []
        self._logs: list[Path] = []

    def start(self, command: Sequence[str], reads: bool = False) -> None:
        """Start a command. reads: whether `finish` gives it an input. Raises BuildFailed."""
        log = self._limits.folder / f"output-{len(self._logs)}.txt"
        try:
            with log.open("wb") as output:
                self._processes.append(self._start(command, output.fileno(), reads))
        except OSError as error:
            remedy = PLACE if error.errno in DISK_TROUBLE else "Run `zoomgrad doctor`."
            raise BuildFailed("the compiler did not start", str(error), remedy) from None
        self._logs.append(log)

    def finish(self, inputs: Sequence[bytes] = ()) -> list[str]:
        """Give the first commands their inputs, wait until all have ended, and return their outputs.

        Commands without an input that wait for one are killed. Raises BuildFailed.
        """
        late = threading.Event()

        def end_late() -> None:
            late.set()
            for process in self._processes:
                asking.end_group(process)

        seconds = self._limits.seconds
        # A timer, because `wait` with a timeout sleeps up to 50 ms at a time, which is half of a short build.
        timer = threading.Timer(seconds, end_late)
        try:
            timer.start()
            used = [process for process in self._processes if not process.stdin]
            for process, text in zip((process for process in self._processes if process.stdin), inputs):
                _give(process, text)
                used.append(process)
            for process in used:
                code = process.wait()
                if late.is_set():
                    raise TookTooLong(
                        f"{_name(process)} took longer than {seconds:g} s",
                        "\n".join(map(_end_of, self._logs)),
                        "Choose a smaller workload, or an engine that compiles faster.",
                    )
                if code:
                    raise BuildFailed(
                        f"{_name(process)} {_how_it_ended(code)}",
                        _end_of(self._logs[self._processes.index(process)]),
                        f"It had {seconds:g} s and {self._limits.most_bytes >> 20:,} MiB. Choose a smaller workload.",
                    )
            return list(map(_end_of, self._logs))
        finally:
            timer.cancel()
            self.end()

    def end(self) -> None:
        """Kill the commands that still run."""
        for process in self._processes:
            asking.end_group(process)
            if process.stdin:
                with contextlib.suppress(OSError):
                    process.stdin.close()
            process.wait()

    def _start(self, command: Sequence[str], output: int, reads: bool) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(  # noqa: S603  (a list of arguments, not run by a shell)
            command,
            cwd=self._limits.folder,
            stdin=subprocess.PIPE if reads else subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Keep its temporary files in the private directory too.
            env={**asking.surroundings(), "TMPDIR": str(self._limits.folder)},
            **_OWN_GROUP,
        )
        asking.lower_limits(process.pid, AS=self._limits.most_bytes, FSIZE=LARGEST_FILE_BYTES)
        return process


def _give(process: subprocess.Popen[bytes], text: bytes) -> None:
    """Write a process's whole input. If it ends before it has read all, its exit code says why."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as stream:
        stream.write(text)


# A group, so that a driver's children end with it. Not a session, so that killing our session also kills the compiler.
_OWN_GROUP: dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {"preexec_fn": os.setpgrp}


def _how_it_ended(code: int) -> str:
    if code > 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):  # a real-time signal has no name
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def _end_of(log: Path) -> str:
    """The end of a compiler's output."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_BYTES))
        return file.read().decode(errors="replace")


def _name(process: subprocess.Popen[bytes]) -> str:
    command = process.args
    return Path(str(command[0])).name if isinstance(command, (list, tuple)) else str(command)
