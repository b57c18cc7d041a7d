"""Find programs on PATH, and ask one for its version or other facts.

A compiler's name on PATH may belong to a folder, a dangling link, or a script that hangs or writes without end. So a
call has limits on time and output, and everything the program started ends with it. Compilers run in the same way, with
a limit of memory as well. A program inherits only a few variables, because `CPATH`, `GCC_EXEC_PREFIX` or `LD_PRELOAD`
would change what is compiled and measured.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from types import MappingProxyType
from typing import Any, NamedTuple, Optional

ANSWER_SECONDS = 5.0
"""A compiler prints its version in milliseconds; one that starts through Python or xcrun takes a second or two."""
ANSWER_BYTES = 1 << 20
"""A compiler's list of macros takes 20 kB."""

INHERITED = (
    *("HOME", "SYSTEMROOT", "TMPDIR", "XDG_CACHE_HOME"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),  # a compiler or a shared build of Python may not start without them
    "DEVELOPER_DIR",  # which Xcode macOS's compilers come from
    "ZOOMGRAD_HARNESS",  # marks the processes of a run
)
"""Environment variables that programs inherit, besides the absolute folders of PATH."""

_POLL_SECONDS = 0.5
"""How often to look for a program that has ended but left its pipe open. Usually the pipe's end of file comes first."""


class NoAnswer(Exception):
    """A program can't be started, fails, or does not end. The text is one line that follows the program's name.

    code: its exit code, negative for a signal. limit: the limit at which it was killed, such as `time` or `output`.
    """

    def __init__(self, reason: str, output: str = "", *, code: int = 0, limit: str = "") -> None:
        printed = one_line(output)
        super().__init__(f"{reason}{printed and f': {printed}'}")
        self.reason, self.output, self.code, self.limit = reason, output, code, limit


class Skipped(NamedTuple):
    """A program that has a compiler's name but is not used."""

    path: str
    reason: str


def folders() -> list[str]:
    """The absolute folders of PATH, because an empty or relative entry depends on the current folder.

    Each folder appears once, even if PATH lists it twice, such as /bin when it is a link to /usr/bin.
    """
    by_path: dict[str, str] = {}
    for folder in os.get_exec_path():
        if Path(folder).is_absolute():
            by_path.setdefault(os.path.realpath(folder), folder)
    return list(by_path.values())


def on_path(pattern: str) -> Iterator[str]:
    """Every file on PATH whose whole name matches, usable or not, in the order of PATH."""
    matches = re.compile(pattern, re.ASCII).fullmatch
    for folder in folders():
        with contextlib.suppress(OSError):  # missing, or not readable
            # Not through Path objects: /usr/bin has thousands of files, and every process looks for compilers.
            yield from sorted(os.path.join(folder, name) for name in filter(matches, os.listdir(folder)))  # noqa: PTH118, PTH208


def unusable(path: str) -> str:
    """Return why that path is not a program; empty if it may be one."""
    return "" if os.access(path, os.X_OK) and Path(path).is_file() else "is not an executable file"


def which(name: str) -> Optional[str]:
    """Absolute path of the first program of that name on PATH."""
    return next((path for path in (str(Path(folder, name)) for folder in folders()) if not unusable(path)), None)


def surroundings() -> dict[str, str]:
    """The environment of a program: the variables in INHERITED, PATH's absolute folders, messages in English."""
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**kept, "PATH": os.pathsep.join(folders()), "LC_ALL": "C"}


def ask(
    command: Sequence[str],
    *,
    seconds: Optional[float] = None,
    most_bytes: int = ANSWER_BYTES,
    errors: bool = True,
    folder: Optional[Path] = None,
    environment: Optional[Mapping[str, str]] = None,
) -> str:
    """Return the command's output, with stderr if `errors`. Raises NoAnswer.

    The command and its process group are killed after `seconds` (default ANSWER_SECONDS) or `most_bytes`.
    """
    with Programs(ANSWER_SECONDS if seconds is None else seconds, most_bytes, folder, environment) as programs:
        programs.start(command, errors=errors)
        return programs.finish()


class Programs:
    """Run programs side by side, each in a new process group, within limits. The block's end kills what still runs.

    seconds: from the start of `finish`. most_bytes: of what all of them write into one pipe. limits: as for
    `lower_limits`. session: whether each begins a session, whose members the caller ends.
    """

    def __init__(
        self,
        seconds: float,
        most_bytes: int,
        folder: Optional[Path] = None,
        environment: Optional[Mapping[str, str]] = None,
        limits: Mapping[str, int] = MappingProxyType({}),
        *,
        session: bool = False,
    ) -> None:
        self.seconds, self.most_bytes, self.limits = seconds, most_bytes, limits
        own = {"start_new_session": True} if session else _OWN_GROUP
        self._place = {**own, "cwd": folder, "env": surroundings() if environment is None else environment}
        self._processes: list[subprocess.Popen[bytes]] = []
        reads, writes = os.pipe()
        self._output, self._input = os.fdopen(reads, "rb", 0), os.fdopen(writes, "wb", 0)

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        # A group outlives its leader: a driver that died may leave its compiler behind.
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self._processes:
            process.wait()
        self._output.close()
        self._input.close()

    def start(self, command: Sequence[str], *, errors: bool = True) -> int:
        """Start a program, and return its pid. Raises NoAnswer."""
        try:
            process = subprocess.Popen(  # noqa: S603  (a list of arguments, not run by a shell)
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._input,
                stderr=subprocess.STDOUT if errors else subprocess.DEVNULL,
                **self._place,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise NoAnswer(f"can't be started ({getattr(error, 'strerror', None) or error})") from None
        self._processes.append(process)
        lower_limits(process.pid, self.limits)
        return process.pid

    def finish(self) -> str:
        """Wait until all have ended, and return what they wrote. Raises NoAnswer as soon as a program fails."""
        deadline = monotonic() + self.seconds
        self._input.close()  # so that the pipe ends with the programs
        poller, is_open, printed, pause = select.poll(), True, bytearray(), 2e-5
        poller.register(self._output, select.POLLIN)
        while True:
            codes = [process.poll() for process in self._processes]
            run = None in codes and not any(codes)
            left = deadline - monotonic()
            # A program that has ended may leave a child behind that holds the pipe open.
            if is_open and poller.poll(1e3 * max(0.0, min(left, _POLL_SECONDS)) if run else 0):
                some = self._output.read(1 << 16)
                printed += some
                is_open = bool(some)
            elif not run:
                break
            elif not is_open:  # usually it ends within microseconds
                sleep(pause)
                pause = min(2 * pause, _POLL_SECONDS)
            if left <= 0.0:
                raise NoAnswer(f"took longer than {self.seconds:g} s", printed.decode(errors="replace"), limit="time")
            if len(printed) > self.most_bytes:
                raise NoAnswer(f"wrote more than {self.most_bytes:,} bytes", limit="output")
        answer, code = printed.decode(errors="replace"), next(filter(None, codes), 0)
        if code:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            how = f"ended with exit code {code}" if code > 0 else f"was ended by {name}"
            raise NoAnswer(how, answer, code=code)
        return answer


_OWN_GROUP: dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}
"""A group, so that a driver's children end with it. Where possible not a session, so that killing our session also
kills the program. Never `preexec_fn`, which may hang in a process with threads."""


def lower_limits(pid: int, most: Mapping[str, int]) -> None:
    """Lower the resource limits of another process, named as in `resource` without `RLIMIT_`. Linux only.

    The parent sets them after the start, because code between fork and exec would have to be safe in any process.
    """
    with contextlib.suppress(ImportError, AttributeError):
        import resource

        for name, wanted in most.items():
            with contextlib.suppress(OSError, ValueError):  # it has already ended
                kind = getattr(resource, f"RLIMIT_{name}")
                hard = resource.prlimit(pid, kind)[1]
                # The limit may already be lower. Root could raise it, and must not.
                value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
                resource.prlimit(pid, kind, (value, value))


def one_line(text: str, most: int = 300) -> str:
    """The text as one line that is safe to print: without control characters, cut after `most` characters."""
    line = " ".join(text.split())
    line = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)
    return line if len(line) <= most else f"{line[:most]}…"
