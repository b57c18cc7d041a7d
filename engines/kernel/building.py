"""C -> a shared object, built by a compiler in isolation.

A build runs in a new directory of mode 0700, without a shell, in a separate process group, under limits of time and
memory. A compiler that fails, hangs or is killed raises BuildFailed with the end of its output.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from zoomgrad.engines import asking
from zoomgrad.engines.kernel.toolchains import Toolchain, linker

SECONDS = 1800.0
"""Time limit for a compiler, in seconds."""

BYTES = 16 << 30
"""Limit of a compiler's address space: Clang 19 -O1 took 5.9 GB for one function of 120,000 rows."""

LIMITS = {"AS": BYTES, "FSIZE": 4 << 30}
"""Limits of a compiler's resources. Its output counts as a file."""

TAIL_CHARACTERS = 800

OUTPUT_BYTES = 16 << 20
"""A compiler that prints more is killed."""

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
def build(tool: Toolchain, units: Sequence[str], flags: Sequence[str]) -> Iterator[Path]:
    """Compile units in parallel and link them to an object, removed at the block's end. Raises BuildFailed."""
    with private_folder() as folder:
        files = [folder / f"unit_{index}.c" for index in range(len(units))]
        for file, text in zip(files, units):
            write(file, text.encode("ascii"))
        link, options, target = linker(tool), [*flags, "-fPIC"], folder / "program.so"
        inputs = [*options, str(files[0])]
        if link or len(units) > 1:
            objects = [file.with_suffix(".o") for file in files]
            compile_one = [*tool.command, *options, "-c"]
            _run(folder, [[*compile_one, str(file), "-o", str(made)] for file, made in zip(files, objects)])
            for made in objects:
                _check(tool, made)
            inputs = list(map(str, objects))
        _run(folder, [[*(link or (*tool.command, *tool.link_flags)), "-o", str(target), *inputs]])
        _check(tool, target)
        yield target


def _check(tool: Toolchain, file: Path) -> None:
    """Raise BuildFailed for an object that is missing, or in 64-bit ELF lacks its section table or a segment's end.

    On a full disk, TCC cuts its object short and reports success. Loading that object would kill the process by SIGBUS.
    """
    name = Path(tool.command[0]).name
    if not file.is_file():
        raise BuildFailed(f"{name} reported success but wrote no object", "", "Run `zoomgrad doctor`.")
    with file.open("rb") as stream:
        head, size = stream.read(4096), stream.seek(0, os.SEEK_END)
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":  # 64 bits, little-endian
        return
    segments, table, bytes_each, count, entry_bytes, entries = struct.unpack_from("<2Q6x4H", head, 0x20)
    ends = [table + entry_bytes * entries, segments + bytes_each * count]
    for at in range(segments, min(ends[1], len(head) - 40), bytes_each or 1):
        ends.append(sum(struct.unpack_from("<Q16xQ", head, at + 8)))  # where it is in the file, and its bytes there
    if size < max(ends):
        raise BuildFailed(
            f"{name} wrote {size:,} of {max(ends):,} bytes of the object, but reported success", "", PLACE
        )


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """Raise BuildFailed if the system refuses to load an object in this block."""
    try:
        yield
    except (OSError, ImportError, UnicodeError) as error:  # a path may be undecodable
        remedy = "Point TMPDIR at another folder: its file system may be mounted noexec, or its name may not be text."
        raise BuildFailed("the object can't be loaded", str(error), remedy) from None


def _run(folder: Path, commands: Sequence[Sequence[str]]) -> None:
    """Run commands side by side in a folder, within limits. Raises BuildFailed."""
    # Keep temporary files in the private directory too.
    environment = {**asking.surroundings(), "TMPDIR": str(folder)}
    try:
        with asking.Programs(SECONDS, OUTPUT_BYTES, folder, environment, LIMITS) as programs:
            for command in commands:
                programs.start(command)
            programs.finish()
    except asking.NoAnswer as none:
        remedy = f"It had {SECONDS:g} s and {BYTES >> 20:,} MiB. Choose a smaller workload, or run `zoomgrad doctor`."
        raise BuildFailed(f"{Path(commands[0][0]).name} {none.reason}", none.output, remedy) from None
