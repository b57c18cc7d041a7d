"""Find programs on PATH, and ask one for its version or other facts.

A compiler's name on PATH may belong to a folder, a dangling link, or a script that hangs or writes without end. So a
call has limits on time and output, and everything the program started ends with it. A program inherits only a few
variables, because `CPATH`, `GCC_EXEC_PREFIX` or `LD_PRELOAD` would change what is compiled and measured.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Optional, TypeVar

ANSWER_SECONDS = 5.0
"""A compiler prints its version in milliseconds; one that starts through Python or xcrun takes a second or two."""
ANSWER_BYTES = 1 << 20
"""A compiler's list of macros takes 20 kB."""

INHERITED = (
    *("HOME", "SYSTEMROOT", "TMPDIR", "XDG_CACHE_HOME"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),  # a compiler or a shared build of Python may not start without them
    "DEVELOPER_DIR",  # which Xcode macOS's compilers come from
    *("ZOOMGRAD_RUN", "ZOOMGRAD_HARNESS"),  # mark the processes of a run
)
"""Environment variables that programs inherit, besides the absolute folders of PATH."""

_OWN_SESSION: dict[str, Any] = {} if sys.platform == "win32" else {"start_new_session": True}
_POLL_SECONDS = 0.05
_SIDE_BY_SIDE = 32

Item = TypeVar("Item")
Result = TypeVar("Result")


class NoAnswer(Exception):
    """A program can't be started, fails, or does not end. The text is one line that follows the program's name."""


class Skipped(NamedTuple):
    """A program that has a compiler's name but is not used."""

    path: str
    reason: str


def folders() -> list[str]:
    """The absolute folders of PATH, because an empty or relative entry depends on the current folder.

    Each folder appears once, even if PATH lists it twice, such as /bin when it is a link to /usr/bin.
    """
    found: dict[str, str] = {}
    for folder in os.get_exec_path():
        if Path(folder).is_absolute():
            found.setdefault(os.path.realpath(folder), folder)
    return list(found.values())


def on_path(pattern: str) -> Iterator[str]:
    """Every file on PATH whose whole name matches, usable or not, in the order of PATH."""
    matches = re.compile(pattern, re.ASCII).fullmatch
    for folder in folders():
        with contextlib.suppress(OSError):  # missing, or not readable
            # Not through Path objects: /usr/bin has thousands of files, and every process looks for compilers.
            yield from sorted(os.path.join(folder, name) for name in filter(matches, os.listdir(folder)))  # noqa: PTH118, PTH208


def unusable(path: str) -> str:
    """Return why that file is not a program; empty if it may be one."""
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        return "is a dangling link" if Path(path).is_symlink() else f"can't be inspected ({error.strerror})"
    if stat.S_ISDIR(mode):
        return "is a folder"
    if not stat.S_ISREG(mode):
        return "is not a regular file"
    return "" if os.access(path, os.X_OK) else "may not be executed"


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
    seconds = ANSWER_SECONDS if seconds is None else seconds
    deadline = monotonic() + seconds
    try:
        process = subprocess.Popen(  # noqa: S603  (a list of arguments, not run by a shell)
            command,
            cwd=folder,
            env=surroundings() if environment is None else environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if errors else subprocess.DEVNULL,
            **_OWN_SESSION,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise NoAnswer(f"can't be started ({getattr(error, 'strerror', None) or error})") from None
    with process:
        try:
            said = _read(process, deadline, most_bytes)
            code = process.wait(max(0.0, deadline - monotonic()))
        except (TimeoutError, subprocess.TimeoutExpired):
            raise NoAnswer(f"gave no answer within {seconds:g} s") from None
        finally:
            end_group(process)
    text = said.decode(errors="replace")
    if code:
        words = one_line(text)
        raise NoAnswer(f"ended with {'signal' if code < 0 else 'exit code'} {abs(code)}{words and f': {words}'}")
    return text


def _read(process: subprocess.Popen[bytes], deadline: float, most_bytes: int) -> bytes:
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    said = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            left = deadline - monotonic()
            if left <= 0:
                raise TimeoutError
            if selector.select(min(left, _POLL_SECONDS)):
                some = os.read(pipe, 1 << 16)
                if not some:
                    return bytes(said)
                said += some
                if len(said) > most_bytes:
                    raise NoAnswer(f"wrote more than {most_bytes:,} bytes")
            elif process.poll() is not None:
                return bytes(said)  # a child that it left behind holds the pipe open


def end_group(process: subprocess.Popen[Any]) -> None:
    """Kill a process and its group. A group outlives its leader: a driver that died may leave its compiler behind."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def lower_limits(pid: int, **most: int) -> None:
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


def side_by_side(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Apply the function to all items in parallel threads. Returns the results in order."""
    from concurrent.futures import ThreadPoolExecutor  # here, because most workers don't need it

    waiting = list(items)
    if len(waiting) < 2:
        return [function(item) for item in waiting]
    with ThreadPoolExecutor(min(len(waiting), _SIDE_BY_SIDE)) as pool:
        return list(pool.map(function, waiting))


def one_line(text: str, most: int = 300) -> str:
    """The text as one line that is safe to print: without control characters, cut after `most` characters."""
    line = " ".join(text.split())
    line = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)
    return line if len(line) <= most else f"{line[:most]}…"
