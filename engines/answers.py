"""Memory of what programs answered, in a file of this user, so that a process need not ask every compiler again.

An answer counts for one question to one file: its path, the path's target, and the target's size, inode and times of
last change. Only programs with machine code of their own are remembered: a script may start another program, and that
one may be replaced while the script stays the same. The same holds for a link to a program with an unrelated name, such
as `gcc` -> `ccache`. Failures are not remembered, because the machine may have caused them.

The file is used only under the rules of `own_files`. Callers check the form of an answer only, so its correctness rests
on the question's key and on these rules.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Optional

from engines import own_files
from engines.api import Unavailable

FILE = "answers.json"
MOST_ANSWERS = 200
MOST_BYTES = 4 << 20

SURROUNDINGS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DEVELOPER_DIR")
"""Inherited variables that may change what a program answers."""


class Memory:
    """The answers of all programs, read from the file once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: Optional[dict[str, Any]] = None
        self._new: dict[str, Any] = {}
        self.is_on = True
        """Whether earlier answers count. New ones are kept even if not."""

    def recall(self, command: Sequence[str], question: str, is_valid: Callable[[Any], bool]) -> Any:
        """The answer to that question; None if there is none, or none that is valid.

        command: the program and its arguments.
        """
        key = _key(command, question) if self.is_on else ""
        with self._lock:
            found = self._answers.get(key) if key else None
        return found if found is not None and is_valid(found) else None

    def keeps(self, command: Sequence[str]) -> bool:
        """Whether later processes will know what this program answers now."""
        return bool(_key(command, ""))

    def answer(
        self, command: Sequence[str], question: str, is_valid: Callable[[Any], bool], ask: Callable[[], Any]
    ) -> Any:
        """The answer, from memory or from `ask`. A valid one is kept; JSON must be able to hold it."""
        found = self.recall(command, question, is_valid)
        if found is not None:
            return found
        # Taken before asking, so that an answer is never kept for a program that was replaced meanwhile.
        key = _key(command, question)
        found = ask()
        with self._lock:
            if key and is_valid(found):
                self._answers[key] = self._new[key] = found
            elif key in self._answers:  # the program worked before
                self._answers[key] = self._new[key] = None
        return found

    @property
    def _answers(self) -> dict[str, Any]:
        if self._known is None:
            self._known = _read()
        return self._known

    def keep(self) -> None:
        """Write new answers to the file. Does nothing if the folder can't be written."""
        with self._lock:
            new, self._new = self._new, {}
        folder = own_files.cache_folder("compilers")
        if not new or folder is None:
            return
        import json

        # Another process may have written meanwhile. If two write at once, one of them asks again next time.
        answers = {**{key: value for key, value in _read().items() if key not in new}, **new}
        latest = dict([item for item in answers.items() if item[1] is not None][-MOST_ANSWERS:])
        with contextlib.suppress(OSError, Unavailable), own_files.opened(folder, make=True) as directory:
            own_files.write(directory, FILE, json.dumps(latest).encode())

    def forget(self) -> None:
        """Start again, as a new process does."""
        with self._lock:
            self._known, self._new = None, {}


MEMORY = Memory()


def _read() -> dict[str, Any]:
    """The file's answers; empty if it is missing or can't be trusted."""
    folder = own_files.cache_folder("compilers")
    if folder is None:
        return {}
    import json  # here, because processes that compile nothing don't need it

    try:
        with own_files.opened(folder) as directory:
            found = json.loads(own_files.read(directory, FILE, MOST_BYTES))
    except (OSError, Unavailable, own_files.Unsound, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _key(command: Sequence[str], question: str) -> str:
    """A hash of everything that an answer depends on; empty if the program's answers must not be remembered."""
    # A command with arguments starts something else, such as a Python package, which may change on its own.
    if len(command) != 1 or own_files.cache_folder("compilers") is None or sys.platform != "linux":
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


_FACTS = re.compile(
    r"^(model name|flags|[Ff]eatures|CPU (?:implementer|part|variant|architecture)|cpu|isa|uarch|m\w+id)\s*:(.*)",
    re.MULTILINE,
)
"""Lines of /proc/cpuinfo that identify a processor: on x86 and ARM, then on POWER, RISC-V and others."""


def _processor() -> str:
    """What -march=native depends on: a home folder may be shared by different machines."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            first = file.read(1 << 14).split("\n\n")[0]
    except OSError:
        first = ""
    return " ".join([platform.machine(), *(" ".join(fact) for fact in _FACTS.findall(first))])
