"""Runs of `tuple` and one engine that misbehaves. Its record must say what happened, and nothing else may change."""

from __future__ import annotations

import sys

from faults.kinds import Batch
from faults.planted.misbehaving.every_way import EXPECTED, LATE, LIMITS, STEPS_BEFORE
from faults.runs import RUN_SECONDS, check_alone, check_complete, check_kept, check_said, check_whole, on_disk
from faults.sandbox import Sandbox, descendants, end_descendants, is_worker
from faults.tally import Tally

NAME = "engines"
FAULTS = "engines that crash, hang, fork, flood, lie or break their promises, one in each run"
UNIT = "an engine"
BATCHES = 20
SECONDS = 900.0

WORKER_SECONDS = "6"
GOOD = "tuple"


def lacks() -> str:
    """Why it can't run here; empty if it can."""
    return "" if sys.platform != "win32" else "most of these faults need POSIX"


def run(batch: Batch, tally: Tally) -> None:
    """Try every BATCHES-th engine, starting at the batch's number."""
    for name in sorted(EXPECTED)[batch.index :: BATCHES]:
        _try(Sandbox(batch.folder / name), name, EXPECTED[name], batch.seed, tally)
        tally.tries += 1


def _try(sandbox: Sandbox, name: str, expected: set[str], seed: int, tally: Tally) -> None:
    victim = sandbox.run(f"{GOOD},{name}", seed, "--blocks", "1", "--timeout", WORKER_SECONDS, planted=True)
    code = victim.wait(RUN_SECONDS)
    check_said(victim, code, {0, 1}, tally, name)
    # The harness has ended, so no worker may still run.
    for process in descendants(is_worker):
        tally.count("left_over", f"{name}: {process.pid} is a worker whose harness ended")
    store = sandbox.store()
    check_whole(store, tally, name)
    check_complete(store, tally, name, failures=True)
    before = on_disk(store)
    for record in store.records() if store else ():
        wanted = {"measured"} if record.cell.engine == GOOD else expected
        if name in LATE and record.stretch_steps in range(1, STEPS_BEFORE + 1):
            # On a busy machine the stretch may end before its first wrong step.
            wanted = {*wanted, "measured"}
        if record.status not in wanted:
            tally.count("mismatches", f"{name}: {record.cell} is {record.status}: {record.reason[:300]}")
        if record.cell.engine == name and record.limit not in LIMITS.get(name, {"", "time"}):
            tally.count("mismatches", f"{name}: its record names the limit {record.limit!r}: {record.reason[:300]}")
        if record.cell.engine == name and record.status != "measured" and not record.reason.strip():
            tally.count("mismatches", f"{name}: its record gives no reason")
    if store:
        # The engine's traces in the run's folder must not break the next command either.
        resumed = sandbox.start("run", "--resume", store.run.id, planted=True)
        check_said(resumed, resumed.wait(RUN_SECONDS), {0, 1}, tally, f"{name}, resumed")
        check_kept(store, before, tally, name)
    check_alone(sandbox, tally, name)
    end_descendants()
