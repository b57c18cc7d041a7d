"""The harness on a host of a fleet: `python -m zoomgrad.harness.fleet.host FOLDER BLOCK`, which a dask worker starts.

Reads `run.json` in the folder, and writes `answer.json` there, or says why it can't measure. It is an ordinary harness:
its timing workers are its children, see only the variables that `harness.run` passes on, and hold the machine's lock
meanwhile. So two dask workers on one machine take turns.

The host keeps its own store of the run, with evidence and records. So a block that was interrupted continues if the
same host gets it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from zoomgrad.datasets import fetch
from zoomgrad.harness import workloads
from zoomgrad.harness.interrupts import raise_on_interrupts
from zoomgrad.harness.machine import environments, facts, interpreters
from zoomgrad.harness.machine.interpreters import Interpreter
from zoomgrad.harness.machine.project import code_digest
from zoomgrad.harness.plan import planning
from zoomgrad.harness.run.isolate import isolate
from zoomgrad.harness.run.lock import locked
from zoomgrad.harness.run.schedule import Observer, Schedule
from zoomgrad.harness.worker.lifeline import end_with_the_harness
from zoomgrad.results.places import STATE
from zoomgrad.results.record import HostFacts, Model, Record, Run, Vouching
from zoomgrad.results.store import Store

FOLDER = STATE / "fleet"
"""A host's stores of runs."""
RUN, ANSWER = "run.json", "answer.json"


class Answer(Model):
    """A host's answer: the records of a block."""

    facts: HostFacts
    records: tuple[Record, ...] = ()
    """Of the whole block, without cells that gave no result in an earlier block on this host."""
    vouchings: tuple[Vouching, ...] = ()


def main(folder: Path, block: int) -> None:
    """Measure that block of the run in the folder."""
    end_with_the_harness()
    raise_on_interrupts()
    run = Run.model_validate_json((folder / RUN).read_text(encoding="utf-8"))
    there = interpreters.discover()
    if reason := unfit(run, there):
        sys.exit(reason)
    fetch.fetch_for(workloads.load(name).reader for name in run.workloads)
    with locked(wait=True):
        store, plan = _store(run), planning.Plan(run, planning.by_name(there))
        schedule = Schedule(plan, store, isolate, environments.environment, Observer())
        schedule.measure([point for point in plan.order() if point[0] == block])
        about = HostFacts(identity=_identity(run), machine=facts.gather())
    records = tuple(record for record in store.records() if record.block == block)
    answer = Answer(facts=about, records=records, vouchings=tuple(store.vouchings()))
    (folder / ANSWER).write_text(answer.model_dump_json(exclude_defaults=True), encoding="utf-8")


def unfit(run: Run, there: Sequence[Interpreter]) -> str:
    """Why this host can't measure for that client, and the remedy; empty if it can."""
    if run.code != code_digest():
        is_commit = run.commit and not run.commit.endswith("+")
        remedy = f"git fetch && git checkout {run.commit}" if is_commit else "copy the client's checkout"
        return f"its code or its lock files differ from the client's. On that host, {remedy}."
    versions = {one.name: one.full_version for one in there}
    for name in dict.fromkeys((run.reference_interpreter, *(cell.interpreter for cell in run.cells))):
        wanted = run.interpreters[name].version if name in run.interpreters else ""
        if wanted not in ("", versions.get(name)):
            has = versions.get(name, "no such interpreter")
            return f"the run needs {name}, version {wanted}, and it has {has}. On that host, uv python install {name}"
    return ""


def _identity(run: Run) -> str:
    """Digest that identifies this machine within this run only."""
    parts = [run.id, str(run.seed), platform.node()]
    for file in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with contextlib.suppress(OSError):
            parts.append(Path(file).read_text(encoding="utf-8").strip())
            break
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _store(run: Run) -> Store:
    """The host's store of the run, made if there is none."""
    if (FOLDER / run.id / "run.json").exists():
        return Store(FOLDER / run.id)
    shutil.rmtree(FOLDER / run.id, ignore_errors=True)  # a process was killed while it made the folder
    return Store.create(run, under=FOLDER)


def forget(run_id: str) -> None:
    """Remove the host's store of a run. Runs inside a dask worker."""
    if (FOLDER / run_id / "run.json").exists():
        shutil.rmtree(FOLDER / run_id, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
