"""The harness on a host of a fleet: `python -m harness.fleet.host`, which a dask worker starts for each task.

Reads one request, a line of JSON, and prints lines of JSON, each of them whole: facts about the host, or records as
they end. It is an ordinary harness: its timing workers are its children, see only the variables that `harness.run`
passes on, and hold the machine's lock meanwhile. It ends when its standard input does, because then nobody listens.

The host keeps its own store of the run, with evidence, compiled objects and records. So a unit that was interrupted
continues, and sends everything again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

import datasets
from datasets import fetch, mnist
from datasets.idx import CorruptData
from harness import containment, workloads
from harness.fleet.fingerprint import Fingerprint, describe, fingerprint
from harness.fleet.unit import Unit
from harness.interrupts import raise_on_interrupts
from harness.machine import environments, interpreters
from harness.machine.environments import NoEnvironment
from harness.plan import planning
from harness.run.isolate import RUN, isolate
from harness.run.lock import locked
from harness.run.schedule import Schedule
from harness.worker.lifeline import end_with_the_harness
from results.places import STATE
from results.record import Cell, HostFacts, Model, Record, Run, Vouching
from results.store import Store

FOLDERS = STATE / "fleet"
"""A host's stores, one for each run."""


SLOT = "ZOOMGRAD_FLEET_SLOT"
"""Environment variable that makes a worker one of several on its machine, for tests: its name there."""


def slot() -> str:
    """Which of a machine's slots this is; empty if it has the machine alone, which is then locked while it measures."""
    return os.environ.get(SLOT, "")


class Request(Model):
    """What a host is asked to do."""

    task: Literal["describe", "measure", "forget"]
    run: Run
    unit: Unit | None = None


class Answer(Model):
    """One line of a host's answer: exactly one of these groups."""

    facts: HostFacts | None = None
    fingerprint: Fingerprint | None = None

    record: Record | None = None
    suite: str = ""
    """The pyperf suite of the record's cell on this host so far."""

    vouching: Vouching | None = None

    done: bool = False
    """The unit is complete."""
    given_up: tuple[Cell, ...] = ()
    """Its cells that were not measured, because they gave no result in an earlier block on this host."""


class _Sender:
    """Prints answers. As a schedule's observer it prints each record as soon as it is on the host's disk."""

    def __init__(self, file: IO[str], store: Store | None = None) -> None:
        self._file = file
        self._store = store
        self._vouched: set[str] = set()

    def send(self, answer: Answer) -> None:
        self._file.write(answer.model_dump_json(exclude_defaults=True) + "\n")
        self._file.flush()

    def send_record(self, record: Record) -> None:
        assert self._store
        suite = self._store.pyperf_file(record.cell)
        text = suite.read_text(encoding="utf-8") if record.status == "measured" and suite.exists() else ""
        self.send(Answer(record=record, suite=text))
        vouching = self._store.vouching(record.cell.workload)
        if vouching and vouching.workload not in self._vouched:
            self._vouched.add(vouching.workload)
            self.send(Answer(vouching=vouching))

    def started(self, cell: Cell, block: int) -> None: ...

    def finished(self, record: Record, seconds_left: float) -> None:
        self.send_record(record)

    def extended(self, cells: int) -> None: ...

    def abandoned(self) -> None: ...


def main() -> None:
    """Answer one request."""
    end_with_the_harness()
    raise_on_interrupts()
    # Nothing else may write among the answers.
    file = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    request = Request.model_validate_json(sys.stdin.readline())
    threading.Thread(target=_end_with_the_input, daemon=True).start()
    os.environ[RUN] = request.run.id
    answer(request, file)


def _end_with_the_input() -> None:
    while sys.stdin.readline():
        pass
    os._exit(1)


def answer(request: Request, file: IO[str]) -> None:
    """Do what is asked, and print the answers to the file."""
    if request.task == "forget":
        forget(request)
        _Sender(file).send(Answer(done=True))
        return
    found = interpreters.discover(remembered=True)
    if request.task == "describe":
        prepare(request.run, found)
        facts = describe(request.run, found, slot())
        _Sender(file).send(Answer(facts=facts, fingerprint=fingerprint(request.run)))
        return
    assert request.unit
    with _alone():
        store = _store(request)
        sender = _Sender(file, store)
        points = [(request.unit.number, cell) for cell in request.unit.cells]
        for record in store.records():
            if (record.block, record.cell) in points:
                sender.send_record(record)
        run = _with_ready_times(request.run, request.unit)
        schedule = Schedule(planning.on_host(run, found), store, isolate, environments.environment, sender)
        schedule.measure(points)
        there = {record.cell for record in store.records() if record.block == request.unit.number}
    sender.send(Answer(done=True, given_up=tuple(request.unit.cells_without(there))))


def prepare(run: Run, found: list[interpreters.Interpreter]) -> None:
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
def _alone() -> Iterator[None]:
    """Hold the machine's lock. Slots that share a machine for a test don't: their client holds it."""
    if slot():
        yield
        return
    with locked(["zoomgrad", "run", "--on"], waiting=lambda holder: None):
        containment.end_leftovers()
        yield


def _folder(request: Request) -> Path:
    digest = hashlib.sha256(f"{request.run.seed} {slot()}".encode()).hexdigest()[:12]
    return FOLDERS / f"{request.run.id}-{digest}"


def _store(request: Request) -> Store:
    """The host's store of the run, made if there is none."""
    under = _folder(request)
    folder = under / request.run.id
    if not (folder / "run.json").exists():
        shutil.rmtree(under, ignore_errors=True)  # a process was killed while it made the folder
        under.mkdir(parents=True)
        return Store.create(request.run, under=under)
    return Store(folder)


def forget(request: Request) -> None:
    """Remove the host's store of the run, and its compiled objects."""
    under = _folder(request)
    if (under / request.run.id / "run.json").exists():
        Store(under / request.run.id).remove_objects()
    shutil.rmtree(under, ignore_errors=True)


def _with_ready_times(run: Run, unit: Unit) -> Run:
    """The run as the schedule should see it: it compares a block with `ready_blocks`, and here a round counts."""
    blocks = unit.number + 1 if unit.round < run.settings.ready_blocks else 0
    return run.model_copy(update={"settings": run.settings.model_copy(update={"ready_blocks": blocks})})


if __name__ == "__main__":
    main()
