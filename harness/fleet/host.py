"""The harness on a host of a fleet: `python -m zoomgrad.harness.fleet.host`, which a dask worker starts for each task.

Reads one request, a line of JSON, and prints one answer. It is an ordinary harness: its timing workers are its
children, see only the variables that `harness.run` passes on, and hold the machine's lock meanwhile. It ends when its
standard input does, because then nobody listens.

The host keeps its own store of the run, with evidence, compiled objects and records. So a unit that was interrupted
continues if the same host gets it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from zoomgrad import datasets
from zoomgrad.datasets import fetch, mnist
from zoomgrad.datasets.idx import CorruptData
from zoomgrad.harness import containment, workloads
from zoomgrad.harness.fleet.unit import Unit
from zoomgrad.harness.interrupts import raise_on_interrupts
from zoomgrad.harness.machine import environments, facts, interpreters
from zoomgrad.harness.machine.environments import NoEnvironment
from zoomgrad.harness.machine.interpreters import Interpreter
from zoomgrad.harness.machine.project import code_digest
from zoomgrad.harness.plan import planning
from zoomgrad.harness.run.isolate import RUN, isolate
from zoomgrad.harness.run.lock import locked
from zoomgrad.harness.run.schedule import Schedule
from zoomgrad.harness.worker.lifeline import end_with_the_harness
from zoomgrad.results.fields import OneLine
from zoomgrad.results.places import STATE
from zoomgrad.results.record import Cell, HostFacts, Model, Record, Run, Vouching
from zoomgrad.results.store import Store

FOLDERS = STATE / "fleet"
"""A host's stores, one for each run."""


class Request(Model):
    """What a host is asked to do: to measure the unit, or to describe itself if there is none."""

    run: Run
    slot: str = ""
    """Which of a machine's workers this is; empty if it has the machine alone, which is then locked."""
    unit: Unit | None = None


class Answer(Model):
    """A host's answer: facts, or the records of a unit."""

    facts: HostFacts | None = None
    code: OneLine = ""
    """Digest of its source files and lock files, which must be the client's."""
    records: tuple[Record, ...] = ()
    """Of the whole unit, without cells that gave no result in an earlier block on this host."""
    vouchings: tuple[Vouching, ...] = ()


def main() -> None:
    """Answer one request."""
    end_with_the_harness()
    raise_on_interrupts()
    # Nothing else may write beside the answer.
    file = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    request = Request.model_validate_json(sys.stdin.readline())
    threading.Thread(target=_end_with_the_input, daemon=True).start()
    os.environ[RUN] = request.run.id
    file.write(answer(request).model_dump_json(exclude_defaults=True))
    file.flush()


def _end_with_the_input() -> None:
    while sys.stdin.readline():
        pass
    os._exit(1)


def answer(request: Request) -> Answer:
    """Do what is asked."""
    found = interpreters.discover()
    if not request.unit:
        prepare(request.run, found)
        return Answer(facts=describe(request.run, found, request.slot), code=code_digest())
    with _alone(request.slot):
        store = _store(request)
        run = _with_ready_times(request.run, request.unit)
        schedule = Schedule(planning.on_host(run, found), store, isolate, environments.environment, _Nobody())
        schedule.measure([(request.unit.number, cell) for cell in request.unit.cells])
        records = tuple(record for record in store.records() if record.block == request.unit.number)
    return Answer(records=records, vouchings=tuple(store.vouchings()))


class _Nobody:
    """The observer of a schedule that nobody watches."""

    def started(self, cell: Cell, block: int) -> None: ...
    def finished(self, record: Record, seconds_left: float) -> None: ...
    def extended(self, cells: int) -> None: ...
    def abandoned(self) -> None: ...


def describe(run: Run, found: Sequence[Interpreter], slot: str) -> HostFacts:
    """Facts about this host."""
    wanted = {cell.interpreter for cell in run.cells}
    return HostFacts(
        identity=_identity(run, slot),
        machine=facts.gather(),
        shared=bool(slot),
        interpreters={one.name: one.full_version for one in found if one.name in wanted},
    )


def _identity(run: Run, slot: str) -> str:
    """Digest that identifies this machine within this run only."""
    parts = [run.id, str(run.seed), platform.node(), slot]
    for file in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with contextlib.suppress(OSError):
            parts.append(Path(file).read_text(encoding="utf-8").strip())
            break
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def prepare(run: Run, found: Sequence[Interpreter]) -> None:
    """Fetch data and make environments. Ignores failures: the cells' records will give the reason."""
    if any(workloads.load(name).reader is mnist.load for name in run.workloads):
        with contextlib.suppress(datasets.Unavailable, CorruptData):
            fetch.fetch_mnist()
    wanted = {cell.interpreter for cell in run.cells} | {run.reference_interpreter}
    for interpreter in found:
        if interpreter.name in wanted:
            with contextlib.suppress(NoEnvironment):
                environments.environment(interpreter)


@contextlib.contextmanager
def _alone(slot: str) -> Iterator[None]:
    """Hold the machine's lock. Slots that share a machine for a test don't: their client holds it."""
    if slot:
        yield
        return
    with locked(waiting=lambda holder: None):
        containment.end_leftovers()
        yield


def _store(request: Request) -> Store:
    """The host's store of the run, made if there is none."""
    slot = hashlib.sha256(request.slot.encode()).hexdigest()[:12]
    under = FOLDERS / f"{request.run.id}-{slot}"
    if not (under / request.run.id / "run.json").exists():
        shutil.rmtree(under, ignore_errors=True)  # a process was killed while it made the folder
        under.mkdir(parents=True)
        return Store.create(request.run, under=under)
    return Store(under / request.run.id)


def forget(run_id: str) -> None:
    """Remove the host's stores of a run, and its compiled objects. Runs inside a dask worker."""
    for under in FOLDERS.glob(f"{run_id}-*"):
        if (under / run_id / "run.json").exists():
            Store(under / run_id).remove_objects()
        shutil.rmtree(under, ignore_errors=True)


def _with_ready_times(run: Run, unit: Unit) -> Run:
    """The run as the schedule should see it: it compares a block with `ready_blocks`, and here a round counts."""
    blocks = unit.number + 1 if unit.round < run.settings.ready_blocks else 0
    return run.model_copy(update={"settings": run.settings.model_copy(update={"ready_blocks": blocks})})


if __name__ == "__main__":
    main()
