"""A scratch tree that a victim lives in, what it may not touch, and every process that comes from it.

The batch's process takes in orphans (`PR_SET_CHILD_SUBREAPER`), so that whatever a victim starts is among its
descendants, whichever session, name or environment it has.
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

from harness import interpreters
from harness.interpreters import ROOT
from results.store import Store

PATH = "/usr/local/bin:/usr/bin:/bin"
"""Compilers and git. Interpreters elsewhere would be probed at the start of each of hundreds of runs."""

MATPLOTLIB = ROOT / ".zoomgrad" / "faults" / "matplotlib"
"""Its list of fonts takes seconds to make in each new home."""

DECOYS = ("home/notes.txt", "home/.config/settings", "tmp/somebody-elses", "cache/kept", "runs/notes.txt", "runs/old/x")
"""Files that nothing of ours may touch."""

GRACE_SECONDS = 10.0
"""A process that was killed takes a moment to go."""

EMPTY_LOOKS = 3
"""A process that forks and ends while the list is made is not on it, nor is its child: one look is not enough."""


# --- processes -------------------------------------------------------------------------------------------------------


def descendants(wanted: Callable[[psutil.Process], bool] = lambda process: True) -> list[psutil.Process]:
    """Every process that comes from this one, still runs, and is wanted."""
    found = []
    for process in psutil.Process().children(recursive=True):
        # It may end while it is looked at.
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and wanted(process):
                found.append(process)
    return found


def end_descendants() -> None:
    """Kill them all, also those that they start meanwhile, and those that are stopped."""
    until = time.monotonic() + GRACE_SECONDS
    empty = 0
    while empty < EMPTY_LOOKS and time.monotonic() < until:
        left = descendants()
        empty = 0 if left else empty + 1
        kill(left)
        reap()
        time.sleep(0.01)


def kill(processes: Sequence[psutil.Process]) -> None:
    """SIGKILL, to those that are still there. psutil knows a pid that was given to another process."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()


def reap() -> None:
    """Wait for children that ended: orphans that became ours have nobody else."""
    if sys.platform != "linux":
        return
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.Error, ChildProcessError):
            if process.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(process.pid, os.WNOHANG)


def left_over(wanted: Callable[[psutil.Process], bool] = lambda process: True) -> list[str]:
    """Descendants that are there after the grace: pid and command of each."""
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
    """Whether it runs a worker's module, pyperf's own worker included."""
    return any(part.startswith(("harness.worker.", "faults.worker.")) for part in process.cmdline())


def is_compiler(process: psutil.Process) -> bool:
    """Whether it is a compiler, or what a compiler starts."""
    return process.name().startswith(("tcc", "gcc", "cc1", "clang", "as", "ld", "collect2"))


# --- the tree --------------------------------------------------------------------------------------------------------


@cache
def interpreter() -> str:
    """Name of the interpreter that victims measure on; its environment is made here, where a network may be."""
    os.environ |= {"PATH": PATH, "PYENV_ROOT": os.devnull}
    chosen = interpreters.reference(interpreters.discover())
    interpreters.environment(chosen)
    MATPLOTLIB.mkdir(parents=True, exist_ok=True)
    return chosen.name


class Victim:
    """A `zoomgrad` in the sandbox, and what it printed."""

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
        """Its exit code; None where it takes longer, and is ended with all that it started."""
        until = time.monotonic() + seconds
        while self.running:
            if time.monotonic() > until:
                self.kill()
                end_descendants()
                return None
            time.sleep(0.02)
        return self.process.returncode

    def wait_until(self, seconds: float, condition: Callable[[], bool] = lambda: False) -> bool:
        """Wait so long, or until the condition holds; whether it still runs then."""
        until = time.monotonic() + seconds
        while self.running and time.monotonic() < until and not condition():
            time.sleep(0.002)
        return self.running

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Sandbox:
    """Folders that stand for a user's home, and the runs among them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.logs = folder.with_name(f"{folder.name}-logs")
        """Beside the sandbox: whatever disk that lies on, what a victim says is kept."""
        self.logs.mkdir(parents=True)
        for decoy in DECOYS:
            (folder / decoy).parent.mkdir(parents=True, exist_ok=True)
            (folder / decoy).write_text("not yours\n", encoding="utf-8")
        self._started = 0
        self._before = dict(self._watched())

    @property
    def environment(self) -> dict[str, str]:
        """All that a victim sees of ours."""
        kept = {name: os.environ[name] for name in ("LANG", "LD_LIBRARY_PATH", "SYSTEMROOT") if name in os.environ}
        places = {
            "HOME": "home",
            "TMPDIR": "tmp",
            "XDG_CACHE_HOME": "cache",
            "ZOOMGRAD_CACHE": "cache",
            "ZOOMGRAD_RUNS": "runs",
            "ZOOMGRAD_REFERENCE": "reference",
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
        """`zoomgrad ARGUMENTS…` with the campaign's preset. planted: with the engines that misbehave."""
        self._started += 1
        options = ["--planted"] if planted else []
        command = [sys.executable, "-m", "faults.victim", *options, *arguments]
        return Victim(command, self.environment, self.logs / f"output-{self._started}.txt")

    def run(self, engines: str, seed: int, *arguments: str, planted: bool = False) -> Victim:
        """`zoomgrad run` of those engines on `xor`."""
        given = ("run", "--preset", "faults", "--engines", engines, "--interpreters", interpreter())
        return self.start(*given, "--seed", str(seed), *arguments, planted=planted)

    def store(self) -> Store | None:
        """The run that was begun; None where a victim died before there was one."""
        found = sorted(path.parent for path in self.runs.glob("*/run.json"))
        return Store(found[-1]) if found else None

    def touched(self) -> list[str]:
        """Files outside the run folders that were changed, removed or made since the sandbox was."""
        after = dict(self._watched())
        changed = [path for path, facts in self._before.items() if after.get(path) != facts]
        made = [path for path in after if path not in self._before and not self._may_be_made(Path(path))]
        return sorted({*changed, *made})

    def _may_be_made(self, path: Path) -> bool:
        """The cache is ours. Temporary folders of processes that were killed stay behind, under a name of ours."""
        in_ = path.relative_to(self.folder).parts if path.is_relative_to(self.folder) else ()
        return in_[:1] == ("cache",) or (in_[:1] == ("tmp",) and in_[1].startswith("zoomgrad-"))

    def _watched(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Decoys, the home, and the checkout's own files."""
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
    """The checkout's files; none where it is no checkout."""
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
