"""Scratch tree for a victim, the files that it must not touch, and every process that it starts.

The batch's process adopts orphans (`PR_SET_CHILD_SUBREAPER`), so everything that a victim starts is among its
descendants, in any session and under any name or environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import psutil

from harness.machine import environments, interpreters
from results.places import ROOT
from results.store import Store

PATH = "/usr/local/bin:/usr/bin:/bin"
"""Enough for compilers and git. Each of hundreds of runs would probe the interpreters of a longer PATH."""

MATPLOTLIB = ROOT / ".zoomgrad" / "faults" / "matplotlib"
"""Shared, because matplotlib takes seconds to list the fonts for a new home."""

DECOYS = ("home/notes.txt", "home/.config/settings", "tmp/somebody-elses", "cache/kept", "runs/notes.txt", "runs/old/x")
"""Files that zoomgrad must not touch."""

GRACE_SECONDS = 10.0
"""A killed process takes a moment to disappear."""

EMPTY_LOOKS = 3
"""Empty lists in a row that mean no process is left. One list misses a process that forks and exits, and its child."""


# --- processes -------------------------------------------------------------------------------------------------------


def descendants(wanted: Callable[[psutil.Process], bool] = lambda process: True) -> list[psutil.Process]:
    """Running descendants of this process that match."""
    found = []
    for process in psutil.Process().children(recursive=True):
        # It may end during this loop.
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and wanted(process):
                found.append(process)
    return found


def end_descendants() -> None:
    """Kill all descendants, including stopped ones and those that start during the call."""
    until = time.monotonic() + GRACE_SECONDS
    empty = 0
    while empty < EMPTY_LOOKS and time.monotonic() < until:
        left = descendants()
        empty = 0 if left else empty + 1
        kill(left)
        reap()
        time.sleep(0.01)


def kill(processes: Sequence[psutil.Process]) -> None:
    """Send SIGKILL to those that still exist. psutil notices a reused pid."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()


def reap() -> None:
    """Reap children that ended. For adopted orphans no other process does it."""
    if sys.platform != "linux":
        return
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.Error, ChildProcessError):
            if process.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(process.pid, os.WNOHANG)


def left_over(wanted: Callable[[psutil.Process], bool] = lambda process: True) -> list[str]:
    """Pid and command of each descendant that is left after the grace period."""
    until = time.monotonic() + GRACE_SECONDS
    empty = 0
    while True:
        reap()
        left = descendants(wanted)
        empty = 0 if left else empty + 1
        if empty == EMPTY_LOOKS or time.monotonic() > until:
            return [_described(process) for process in left]
        time.sleep(0.05)


def _described(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {' '.join(process.cmdline())[:200] or process.name()}"
    except psutil.Error:
        return str(process.pid)


def is_worker(process: psutil.Process) -> bool:
    """Whether the process runs a worker's module; pyperf's worker does too."""
    return any(part.startswith(("harness.worker.", "faults.worker.")) for part in process.cmdline())


def is_compiler(process: psutil.Process) -> bool:
    """Whether the process is a compiler or one of its tools."""
    return process.name().startswith(("tcc", "gcc", "cc1", "clang", "as", "ld", "collect2"))


# --- the tree --------------------------------------------------------------------------------------------------------


@cache
def interpreter() -> str:
    """Name of the interpreter that victims measure on. Makes its environment first, while a network is available."""
    os.environ |= {"PATH": PATH, "PYENV_ROOT": os.devnull}
    chosen = interpreters.reference(interpreters.discover())
    environments.environment(chosen)
    MATPLOTLIB.mkdir(parents=True, exist_ok=True)
    return chosen.name


class Victim:
    """A `zoomgrad` process in the sandbox and its output."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(  # noqa: S603  (our own module, a list of arguments)
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def wait(self, seconds: float) -> int | None:
        """Its exit code. After a timeout, end it with all its descendants and return None."""
        until = time.monotonic() + seconds
        while self.running:
            if time.monotonic() > until:
                self.kill()
                end_descendants()
                return None
            time.sleep(0.02)
        return self.process.returncode

    def wait_until(self, seconds: float, condition: Callable[[], bool] = lambda: False) -> bool:
        """Wait until it ends, the condition holds or the time is up. Return whether it is still running."""
        until = time.monotonic() + seconds
        while self.running and time.monotonic() < until and not condition():
            time.sleep(0.002)
        return self.running

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Sandbox:
    """Folders that act as a user's home, cache and runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.logs = folder.with_name(f"{folder.name}-logs")
        """Outside the sandbox, whose disk may be full or read-only."""
        self.logs.mkdir(parents=True)
        for decoy in DECOYS:
            (folder / decoy).parent.mkdir(parents=True, exist_ok=True)
            (folder / decoy).write_text("not yours\n", encoding="utf-8")
        self._started = 0
        self._before = dict(self._guarded())

    @property
    def environment(self) -> dict[str, str]:
        """The victim's whole environment."""
        kept = {name: os.environ[name] for name in ("LANG", "LD_LIBRARY_PATH", "SYSTEMROOT") if name in os.environ}
        places = {
            "HOME": "home",
            "TMPDIR": "tmp",
            "XDG_CACHE_HOME": "cache",
            "ZOOMGRAD_CACHE": "cache",
            "ZOOMGRAD_RUNS": "runs",
            "ZOOMGRAD_BASELINE_RUNS": "baseline_runs",
        }
        kept |= {name: str(self.folder / place) for name, place in places.items()}
        return {
            **kept,
            "ZOOMGRAD_LOCK": str(self.logs / "measuring.lock"),
            "PATH": PATH,
            "PYENV_ROOT": os.devnull,
            "PYTHONPATH": str(ROOT),
            "MPLCONFIGDIR": str(MATPLOTLIB),
            "COLUMNS": "200",
            "NO_COLOR": "1",
        }

    def start(self, *arguments: str, planted: bool = False) -> Victim:
        """Start `zoomgrad ARGUMENTS…` with the campaign's preset. planted: add the engines that misbehave."""
        self._started += 1
        options = ["--planted"] if planted else []
        command = [sys.executable, "-m", "faults.victim", *options, *arguments]
        return Victim(command, self.environment, self.logs / f"output-{self._started}.txt")

    def run(self, engines: str, seed: int, *arguments: str, planted: bool = False) -> Victim:
        """Start `zoomgrad run` with those engines on `xor`."""
        given = ("run", "--preset", "faults", "--engines", engines, "--interpreters", interpreter())
        return self.start(*given, "--seed", str(seed), *arguments, planted=planted)

    def store(self) -> Store | None:
        """The newest run; None if no victim lived long enough to begin one."""
        found = sorted(path.parent for path in self.runs.glob("*/run.json"))
        return Store(found[-1]) if found else None

    def touched(self) -> list[str]:
        """Files outside the run folders that were changed, removed or made since this sandbox was made."""
        after = dict(self._guarded())
        changed = [path for path, facts in self._before.items() if after.get(path) != facts]
        made = [path for path in after if path not in self._before and not self._may_be_made(Path(path))]
        return sorted({*changed, *made})

    def _may_be_made(self, path: Path) -> bool:
        """The cache belongs to zoomgrad. A killed process leaves its temporary folders, named `zoomgrad-*`."""
        in_ = path.relative_to(self.folder).parts if path.is_relative_to(self.folder) else ()
        return in_[:1] == ("cache",) or (in_[:1] == ("tmp",) and in_[1].startswith("zoomgrad-"))

    def _guarded(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Facts of the decoys, the home and the checkout's files."""
        runs = {store.parent for store in self.runs.glob("*/run.json")}
        for part in ("home", "tmp", "cache", "runs"):
            for path in (self.folder / part).rglob("*"):
                if not path.is_dir() and not any(path.is_relative_to(run) for run in runs):
                    yield from _facts(path)
        for path in tracked():
            yield from _facts(path)


def _facts(path: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    with contextlib.suppress(OSError):
        found = path.lstat()
        yield str(path), (found.st_size, found.st_mtime_ns)


@cache
def tracked() -> tuple[Path, ...]:
    """Files that git tracks; none outside a git checkout."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"],  # noqa: S607  (the user's own git)
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(ROOT / name for name in listed.split("\0") if name)
