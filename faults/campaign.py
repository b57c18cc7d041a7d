"""Batches -> tallies on disk. Each batch runs in its own process, several at once; an interrupted campaign resumes.

    .zoomgrad/faults/<kind>.jsonl    one line per batch, written as soon as the batch ends

A batch whose process dies counts as a crash, and one that takes too long as a hang. Results hold for one seed and one
commit: when either changes, the batches run again.
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
from harness.machine import facts
from results.places import ROOT

KEPT = ROOT / ".zoomgrad" / "faults"

TAIL_CHARACTERS = 2000
ENDING_SECONDS = 30.0

Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Done:
    """Result of a batch."""

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
        """Command that repeats the batch."""
        return f"python -m faults one {self.kind} {self.index} --seed {self.seed}"


class Kept:
    """Results of one kind on disk."""

    def __init__(self, kind: str, folder: Path = KEPT) -> None:
        self.kind = kind
        self.path = folder / f"{kind}.jsonl"

    def read(self) -> dict[int, Done]:
        """Results by batch number. A truncated line is ignored, so its batch runs again."""
        found = {}
        with contextlib.suppress(FileNotFoundError):
            for line in self.path.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError, TypeError):
                    fields = json.loads(line)
                    done = Done(**{**fields, "tally": Tally(**fields["tally"])})
                    found[done.index] = done
        return found

    def start(self, seed: int, commit: str) -> dict[int, Done]:
        """Return the results for that seed and commit, and delete all others."""
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
    """Numbers of the batches that make up that share of the kind: at least one, evenly spread."""
    batches = kinds.load(kind).BATCHES
    wanted = max(1, round(batches * share))
    return sorted({index * batches // wanted for index in range(wanted)})


def run(
    names: Sequence[str], *, share: float, seed: int, jobs: int, told: Callable[[Done], None], folder: Path = KEPT
) -> list[Done]:
    """Run the missing batches of that share of each kind. Return all of the share's results, old ones included."""
    commit = facts.commit(ROOT)
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
    """Yield batches as they end. An interrupt ends all their processes."""
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
    """Run one batch in its own process."""
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
            tally.count("hangs", f"the batch took longer than {kinds.load(kind).SECONDS:g} s; its output: {said}")
        elif code or not answer.exists():
            tally.count("crashes", f"the batch's process exited with {code}; its output: {said}")
    seconds = round(time.monotonic() - start, 1)
    return Done(kind, index, seed, commit, f"{datetime.now(UTC):%Y-%m-%d %H:%M}", seconds, tally, skipped)


def _read(answer: Path) -> tuple[Tally, str]:
    """The batch's tally, and the reason if it could not run here."""
    try:
        fields = json.loads(answer.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Tally(), ""
    return Tally(**fields["tally"]), fields["skipped"]


def _end(process: Process) -> None:
    """End a batch that is still running: first SIGTERM, because only the batch can end its victims."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDING_SECONDS)
        process.kill()
    process.wait()
