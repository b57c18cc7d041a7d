"""Cache of programs' answers, so that `zoomgrad list` need not start every Python of this machine again.

An answer is valid for one file: its path, the path's target, and the target's size, inode and time of last change.
Failures are not cached, because the machine may have caused them. Every command writes the cache, but only `list` reads
it. Commands that measure or make an environment ask again, because a shared library, or the program behind a wrapper,
may be replaced while the file stays the same.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter

from engines.asking import NoAnswer, side_by_side
from harness.machine.probe import Facts, probe
from results.files import Unreadable, read, write_atomically
from results.places import STATE

KEPT = STATE / "interpreters.json"

Answer = Facts | NoAnswer

_FILE = TypeAdapter(dict[str, Facts])
"""Identity of a file -> its facts."""


class Answers:
    """Asks programs what they are, with a cache."""

    def __init__(self, *, remembered: bool) -> None:
        self._before = _read() if remembered else {}
        self._now: dict[str, Facts] = {}

    def of(self, programs: Sequence[Path]) -> dict[Path, Answer]:
        """Answers of the programs. Those without a cached answer are asked concurrently."""
        # Taken before asking, so that an answer is never stored for a program that was replaced meanwhile.
        identities = {program: _identity(program) for program in programs}
        found: dict[Path, Answer] = {
            program: self._before[key] for program, key in identities.items() if key in self._before
        }
        unknown = [program for program in programs if program not in found]
        found.update(zip(unknown, side_by_side(probe, unknown), strict=True))
        for program, answer in found.items():
            if identities[program] and isinstance(answer, Facts):
                self._now[identities[program]] = answer
        return found

    def keep(self) -> None:
        """Write the cache for the next command. Does nothing if the folder is not writable."""
        if self._now == self._before:
            return
        with contextlib.suppress(OSError):
            KEPT.parent.mkdir(exist_ok=True)
            write_atomically(KEPT, _FILE.dump_json(self._now, indent=1))


def _read() -> dict[str, Facts]:
    """Read the cache; empty if the file is missing or invalid."""
    try:
        return read(KEPT, _FILE)
    except (Unreadable, OSError):
        return {}


def _identity(program: Path) -> str:
    """Identity of the program's file; empty if it can't be read, and then its answer is not cached."""
    try:
        file = program.stat()
    except (OSError, ValueError):
        return ""
    size, changed, inode = file.st_size, file.st_ctime_ns, file.st_ino
    return f"{program} -> {os.path.realpath(program)}, {size} bytes, changed {changed}, inode {inode}"
