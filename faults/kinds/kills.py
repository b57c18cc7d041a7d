"""SIGKILL of the harness, a worker, a compiler or all of them at a random moment. Then the run is resumed."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import psutil

from faults.kinds import Batch
from faults.runs import (
    RUN_SECONDS,
    Files,
    check_alone,
    check_complete,
    check_kept,
    check_said,
    check_whole,
    on_disk,
)
from faults.sandbox import Sandbox, Victim, descendants, end_descendants, is_compiler, is_worker, kill, left_over
from faults.tally import Tally

NAME = "kills"
FAULTS = "SIGKILL of the harness, a worker, a compiler or all of them, at a random moment of a run; then a resume"
UNIT = "a kill"
TRIES = 10
BATCHES = 20
SECONDS = 900.0

ENGINES = ("tuple,tcc", "tcc,rerolled-gcc", "tuple,gcc-O1", "rerolled-tcc", "hoisted,clang-O0")
TARGETS = ("harness", "harness", "harness", "all", "worker", "compiler")
"""Mostly the harness, because it writes the records."""
AGAIN = 0.25
"""Share of kills after which the resumed run is killed too."""


def lacks() -> str:
    """Why it can't run here; empty if it can."""
    return "" if sys.platform != "win32" else "Windows has no SIGKILL"


def run(batch: Batch, tally: Tally) -> None:
    """Time an undisturbed run, then kill runs, each in its own sandbox."""
    span = _undisturbed(batch, tally)
    for number in range(TRIES if span else 0):
        _try(batch.folder / str(number), batch.rng(number), span, tally, f"kill {number}")
        tally.tries += 1


def _undisturbed(batch: Batch, tally: Tally) -> float:
    """Seconds that an undisturbed run takes; 0.0 if it fails."""
    sandbox = Sandbox(batch.folder / "undisturbed")
    start = time.monotonic()
    victim = sandbox.run(ENGINES[0], batch.seed)
    code = victim.wait(RUN_SECONDS)
    seconds = time.monotonic() - start
    before = tally.failures
    check_said(victim, code, {0}, tally, "undisturbed")
    check_complete(sandbox.store(), tally, "undisturbed")
    check_alone(sandbox, tally, "undisturbed")
    return 0.0 if tally.failures > before else seconds


def _try(folder: Path, rng: random.Random, span: float, tally: Tally, where: str) -> None:
    target, engines = rng.choice(TARGETS), rng.choice(ENGINES)
    share, seed, again = rng.random(), rng.randrange(1 << 32), rng.random() < AGAIN
    blocks = rng.choice(("1", "2"))
    where = f"{where} of {target}, {engines}"
    attempt = 0
    while True:
        sandbox = Sandbox(folder / str(attempt))
        victim = sandbox.run(engines, seed, "--blocks", blocks)
        if _kill(victim, target, share * span, rng):
            break
        # The run ended first: try an earlier moment.
        share, attempt = share * 0.7, attempt + 1
    if target in ("worker", "compiler"):
        _go_on(sandbox, victim, tally, where)
    else:
        _resume(sandbox, engines, seed, rng.random() * span if again else 0.0, tally, where)
    check_alone(sandbox, tally, where)
    end_descendants()


def _kill(victim: Victim, target: str, seconds: float, rng: random.Random) -> bool:
    """Kill the target after those seconds, or as soon as one exists after that. Return False if the run ended first."""
    if not victim.wait_until(seconds):
        return False
    if target == "harness":
        victim.kill()
    elif target == "all":
        others = descendants()
        victim.kill()
        kill(others)
    else:
        wanted = is_worker if target == "worker" else is_compiler
        found: list[psutil.Process] = []
        while victim.running and not found:
            found = descendants(wanted)
            time.sleep(0.005)
        if not found:
            return False
        kill([rng.choice(found)])
    return True


def _go_on(sandbox: Sandbox, victim: Victim, tally: Tally, where: str) -> None:
    """Check that the run continues after a worker or compiler was killed. The cell's record may report a failure."""
    code = victim.wait(RUN_SECONDS)
    check_said(victim, code, {0, 1}, tally, where)
    store = sandbox.store()
    check_whole(store, tally, where)
    check_complete(store, tally, where, failures=True)
    before = on_disk(store)
    resumed = sandbox.start("run", "--resume", store.run.id) if store else victim
    check_said(resumed, resumed.wait(RUN_SECONDS), {0, 1}, tally, f"{where}, resumed")
    check_kept(store, before, tally, where)


def _resume(sandbox: Sandbox, engines: str, seed: int, again: float, tally: Tally, where: str) -> None:
    """Resume the run after the harness was killed; it must complete. again: seconds after which it is killed too."""
    for worker in left_over(is_worker):
        tally.count("left_over", f"{where}: outlived the harness: {worker}")
    store = sandbox.store()
    before = on_disk(store)
    check_whole(store, tally, where)
    _plant_draft(before)
    for moment in filter(None, (again, RUN_SECONDS)):
        resumed = sandbox.start("run", "--resume", store.run.id) if store else sandbox.run(engines, seed)
        if moment < RUN_SECONDS and resumed.wait_until(moment):
            resumed.kill()
            store = sandbox.store()
            check_whole(store, tally, f"{where}, killed again")
            check_kept(store, before, tally, f"{where}, killed again")
            before = on_disk(store)
            continue
        check_said(resumed, resumed.wait(RUN_SECONDS), {0}, tally, f"{where}, resumed")
    store = sandbox.store()
    check_whole(store, tally, where)
    check_kept(store, before, tally, where)
    check_complete(store, tally, where)


def _plant_draft(before: Files) -> None:
    """Leave half a record under a draft's name, as a kill between writing and renaming does."""
    for path, content in list(before.items())[:1]:
        path.with_name(".0123456789abcdef.draft").write_bytes(content[: len(content) // 2])
