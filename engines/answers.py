"""Memory of what programs answered, in files of this user, so that a process need not ask every compiler again.

An answer counts for one question to one file: its path, the path's target, and the target's size, inode and times of
last change. Only programs with machine code of their own are remembered: a script may start another program, and that
one may be replaced while the script stays the same. The same holds for a link to a program with an unrelated name, such
as `gcc` -> `ccache`. Failures are not remembered, because the machine may have caused them.

A file is used only under the rules of `engines.files`. Callers check the form of an answer only, so its correctness
rests on the question's key and on these rules.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.files import Unsound, cache_folder, get, put

FOLDER = "compilers"
"""Of all answers, in the cache."""
MOST_BYTES = 4 << 20
"""Of an answer, and of all of them. A compiler's macros take 10 kB."""

SURROUNDINGS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DEVELOPER_DIR")
"""Inherited variables that may change what a program answers."""


class Memory:
    """The answers of all programs."""

    def __init__(self) -> None:
        self.is_on = True
        """Whether earlier answers count. New ones are kept even if not."""

    def answer(
        self, command: Sequence[str], question: str, is_valid: Callable[[Any], bool], ask: Callable[[], Any]
    ) -> Any:
        """The answer, from memory or from `ask`. A valid one is kept; JSON must be able to hold it.

        command: the program and its arguments.
        """
        # Taken before asking, so that an answer is never kept for a program that was replaced meanwhile.
        key, folder = _key(command, question), cache_folder(FOLDER)
        if not key or not folder:
            return ask()
        import json  # here, because processes that compile nothing don't need it

        if self.is_on:
            with contextlib.suppress(Unavailable, Unsound, ValueError, RecursionError):
                known = json.loads(get(folder, key, MOST_BYTES) or "null")
                if known is not None and is_valid(known):
                    return known
        answer = ask()
        text = json.dumps(answer if is_valid(answer) else None)  # null: the program no longer works
        with contextlib.suppress(OSError, Unavailable):
            put(folder, key, text.encode(), most_bytes=MOST_BYTES)
        return answer


MEMORY = Memory()


def _key(command: Sequence[str], question: str) -> str:
    """A hash of everything that an answer depends on; empty if the program's answers must not be remembered."""
    # A command with arguments starts something else, such as a Python package, which may change on its own.
    if len(command) != 1 or cache_folder(FOLDER) is None or sys.platform != "linux":
        return ""
    program = Path(command[0])
    try:
        target = os.path.realpath(program)
        with open(target, "rb") as file:  # noqa: PTH123
            is_code = file.read(4) == b"\x7fELF"
            facts = os.fstat(file.fileno())
    except (OSError, ValueError):
        return ""
    family = re.match(r"[a-z]+", program.name)
    if not is_code or not family or family[0] not in Path(target).name:
        return ""
    file_facts = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    settings = [os.environ.get(name, "") for name in SURROUNDINGS]
    parts = (tuple(command), target, file_facts, settings, _processor(), question)
    return hashlib.sha256(repr(parts).encode(errors="replace")).hexdigest()[:32]


def _processor() -> list[str]:
    """What -march=native depends on, as different machines may share a home folder: lines of /proc/cpuinfo."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            first = file.read(1 << 14).split("\n\n")[0]
    except OSError:
        first = ""
    return [
        platform.machine(),
        *(line for line in first.splitlines() if not re.match("(?i)processor|cpu MHz|bogo", line)),
    ]
