"""Batches -> tallies on disk: each batch in a process of its own, some side by side, resumed where it ended.

    .zoomgrad/faults/<kind>.jsonl    a line a batch, written as soon as it ends

A batch's process that dies is a crash and one that takes too long is a hang, whatever it was about to say. Batches of
another seed or another commit are done again: a line holds for the code that it was made with.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from faults import kinds
from faults.tally import Tally
from harness import machine
from harness.interpreters import ROOT

KEPT = ROOT / ".zoomgrad" / "faults"

TAIL_CHARACTERS = 2000
ENDING_SECONDS = 30.0

Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Done:
    """A batch that ended."""

    kind: str
    index: int
    seed: int
    commit: str
    at: str
    """When it ended, in UTC."""
    seconds: float
    tally: Tally
    skipped: str = ""
    """Why it could not run on this machine."""

    @property
    def command(self) -> str:
        """Runs the same batch again."""
        return f"python -m faults one {self.kind} {self.index} --seed {self.seed}"


class Kept:
    """The batches of a kind that are on disk."""

    def __init__(self, kind: str, folder: Path = KEPT) -> None:
        self.kind = kind
        self.path = folder / f"{kind}.jsonl"

    def read(self) -> dict[int, Done]:
        """Batch -> what came of it. A line that was cut short is left out: its batch is done again."""
        found = {}
        with contextlib.suppress(FileNotFoundError):
            for line in self.path.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError, TypeError):
                    fields = json.loads(line)
                    done = Done(**{**fields, "tally": Tally(**fields["tally"])})
                    found[done.index] = done
        return found

    def start(self, seed: int, commit: str) -> dict[int, Done]:
        """The batches of that seed and commit; others are forgotten."""
        found = {index: done for index, done in self.read().items() if (done.seed, done.commit) == (seed, commit)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".draft")
        draft.write_text("".join(map(_line, found.values())), encoding="utf-8")
        draft.replace(self.path)
        return found

    def add(self, done: Done) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(done))

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)


def _line(done: Done) -> str:
    return json.dumps(asdict(done)) + "\n"


def planned(kind: str, share: float) -> list[int]:
    """The batches that are that share of the kind, spread over all of them; one at least."""
    batches = kinds.load(kind).BATCHES
    wanted = max(1, round(batches * share))
    return sorted({index * batches // wanted for index in range(wanted)})


def run(
    names: Sequence[str], *, share: float, seed: int, jobs: int, told: Callable[[Done], None], folder: Path = KEPT
) -> list[Done]:
    """Do what is not on disk yet of that share of each kind; gives all batches of the share, old ones included."""
    commit = machine.commit(ROOT)
    finished: list[Done] = []
    todo: list[tuple[str, int]] = []
    for name in names:
        there = Kept(name, folder).start(seed, commit)
        for index in planned(name, share):
            if index in there:
                finished.append(there[index])
            else:
                todo.append((name, index))
    for done in _side_by_side(todo, seed, commit, jobs):
        Kept(done.kind, folder).add(done)
        finished.append(done)
        told(done)
    return finished


def _side_by_side(todo: Sequence[tuple[str, int]], seed: int, commit: str, jobs: int) -> Iterator[Done]:
    """Batches as they end. On the way out of an interrupt no process of theirs is left."""
    processes: set[Process] = set()
    stopped = threading.Event()

    def do(kind: str, index: int) -> Done:
        return one(kind, index, seed, commit, processes=processes, stopped=stopped)

    with ThreadPoolExecutor(jobs) as pool:
        waiting = list(todo)[::-1]
        running: set[Future[Done]] = set()
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    running.add(pool.submit(do, *waiting.pop()))
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield future.result()
        finally:
            stopped.set()
            for process in list(processes):
                process.terminate()


def one(
    kind: str,
    index: int,
    seed: int,
    commit: str,
    *,
    processes: set[Process] | None = None,
    stopped: threading.Event | None = None,
) -> Done:
    """Do one batch in a process of its own."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="zoomgrad-faults-", ignore_cleanup_errors=True) as name:
        answer, log = Path(name) / "tally.json", Path(name) / "output.txt"
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603  (our own module, a list of arguments)
                [sys.executable, "-m", "faults.batch", kind, str(index), str(seed), name],
                cwd=ROOT,
                # Checkers run after each stage of an engine.
                env={**os.environ, "PYTHONPATH": str(ROOT), "ZOOMGRAD_CHECK": "1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            if processes is not None:
                processes.add(process)
            try:
                code: int | None = process.wait(kinds.load(kind).SECONDS)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(process)
                if processes is not None:
                    processes.discard(process)
        said = log.read_text(encoding="utf-8", errors="replace").strip()[-TAIL_CHARACTERS:]
        tally, skipped = _read(answer)
        if stopped is not None and stopped.is_set():
            raise KeyboardInterrupt
        if code is None:
            tally.count("hangs", f"the batch took longer than {kinds.load(kind).SECONDS:g} s; it said: {said}")
        elif code or not answer.exists():
            tally.count("crashes", f"the batch's process ended with {code}; it said: {said}")
    seconds = round(time.monotonic() - start, 1)
    return Done(kind, index, seed, commit, f"{datetime.now(UTC):%Y-%m-%d %H:%M}", seconds, tally, skipped)


def _read(answer: Path) -> tuple[Tally, str]:
    """The tally that the batch wrote, the last before it ended, and why it could not run."""
    try:
        fields = json.loads(answer.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Tally(), ""
    return Tally(**fields["tally"]), fields["skipped"]


def _end(process: Process) -> None:
    """End a batch that took too long: it ends its own victims, which have sessions of their own."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDING_SECONDS)
        process.kill()
    process.wait()
