"""What programs answered, kept between commands: `zoomgrad list` need not start every Python of this machine again.

A kept answer holds for one file: its path, the file that this leads to, and that file's size, inode and time of its
last change. A failure is not kept, because the machine may have caused it. Only `list` goes by kept answers. Whatever
measures or makes an environment asks anew, because the file may stay as it is while its shared library, or what a
wrapper starts, is replaced. All who ask keep what they heard.
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

KEPT = Path(__file__).parents[2] / ".zoomgrad" / "interpreters.json"

Answer = Facts | NoAnswer

_FILE = TypeAdapter(dict[str, Facts])
"""Identity of a file -> its facts."""


class Answers:
    """Asks programs, and remembers."""

    def __init__(self, *, remembered: bool) -> None:
        self._before = _read() if remembered else {}
        self._now: dict[str, Facts] = {}

    def of(self, programs: Sequence[Path]) -> dict[Path, Answer]:
        """What each program says of itself, all asked side by side; a kept answer stands for asking."""
        # Before they are asked: a program that is replaced meanwhile must not pass for the one that answered.
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
        """Write them down for the next command. A folder that can't be written to keeps nothing."""
        if self._now == self._before:
            return
        with contextlib.suppress(OSError):
            KEPT.parent.mkdir(exist_ok=True)
            write_atomically(KEPT, _FILE.dump_json(self._now, indent=1))


def _read() -> dict[str, Facts]:
    """Nothing where the file is missing, damaged, or somebody else's words."""
    try:
        return read(KEPT, _FILE)
    except (Unreadable, OSError):
        return {}


def _identity(program: Path) -> str:
    """Empty for what can't be looked at: its answer is not kept."""
    try:
        file = program.stat()
    except (OSError, ValueError):
        return ""
    size, changed, inode = file.st_size, file.st_ctime_ns, file.st_ino
    return f"{program} -> {os.path.realpath(program)}, {size} bytes, changed {changed}, inode {inode}"
