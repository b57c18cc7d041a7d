"""The client's loop: units out to hosts, records home as they end, until every unit is complete.

A unit belongs to one host and attempt at a time. Lines of that attempt go to the run's records. Lines of an earlier
attempt, whose host was given up but still lives, go to the partial records. So no record counts twice, and none is
thrown away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from pydantic import ValidationError

from harness.fleet.cluster import Cluster, Ended, Event, FleetLost, Joined, Left, NotStarted, Said
from harness.fleet.fingerprint import Fingerprint, Refused, check, same_interpreters
from harness.fleet.host import Answer, Request
from harness.fleet.placing import Place, Waiting, choose
from harness.fleet.unit import Unit, unit_seconds, units
from harness.plan.planning import Plan
from results.comparability import moved
from results.files import MOST_BYTES, first_of
from results.printable import printable
from results.record import Cell, HostFacts, Record, Run, Vouching

MOST_LOSSES = 3
"""How many hosts may be lost with the same unit. It may be what ends them."""
MOST_ANSWERS = 4
"""How many lines a host may send for each cell of a block: an old record, a new one, a vouching."""
MOST_RECORD_BYTES = MOST_BYTES // 2
"""A longer record could not be read again."""
GRACE_SECONDS = 10.0
"""How long a task's last lines may take after the task has ended."""
RESTING_SECONDS = 3.0
"""Pause of a host after it lost a unit: by then it is known whether its worker is there."""
FORGETTING_SECONDS = 20.0
SILENCE_SECONDS = 3600.0
"""How long a host may say nothing, beside the time of ten workers: another run may hold its machine's lock."""


class Keeper(Protocol):
    """Where records come home: `results.fleet.home.Home`, or a fake in memory."""

    @property
    def run(self) -> Run: ...
    def admit(self, name: str, facts: HostFacts) -> None: ...
    def keep(self, record: Record) -> None: ...
    def kept(self, cell: Cell, block: int) -> Record | None: ...
    def keep_times(self, host: str, cell: Cell, suite: str) -> None: ...
    def keep_vouching(self, host: str, vouching: Vouching) -> None: ...
    def complete(self, block: int, host: str, attempt: int) -> None: ...
    def completed(self) -> set[int]: ...
    def records(self) -> Sequence[Record]: ...
    def partial(self) -> Sequence[Record]: ...
    def set_aside(self, block: int) -> int: ...
    def keep_aside(self, record: Record) -> None: ...


class Watcher(Protocol):
    """Receives what happens. The command line displays it."""

    def admitted(self, host: str, facts: HostFacts) -> None: ...
    def refused(self, worker: str, reason: str) -> None: ...
    def finished(self, record: Record, seconds_left: float) -> None: ...
    def lost(self, host: str, block: int, reason: str) -> None: ...
    def extended(self, cells: int) -> None: ...


@dataclass
class _Host:
    name: str
    interpreters: set[str]
    shared: bool
    workers: list[str] = field(default_factory=list)
    """Its workers. The first measures; the others are spares, because a host has one slot."""
    task: str = ""
    began_at: float = 0.0
    seconds: float = 0.0
    """Estimate of its task."""
    rests_until: float = 0.0
    done: float = 0.0
    taken: float = 0.0

    @property
    def pace(self) -> float:
        return self.taken / self.done if self.done and self.taken else 1.0


@dataclass
class _Task:
    worker: str
    unit: Unit | None = None
    host: str = ""
    attempt: int = 0
    records: dict[Cell, Record] = field(default_factory=dict)
    """What it sent that was kept."""
    answers: int = 0
    heard_at: float = 0.0
    ended_at: float | None = None
    over: bool = False


@dataclass
class Collector:
    """Carries out a plan on a cluster."""

    plan: Plan
    home: Keeper
    cluster: Cluster
    watcher: Watcher
    fingerprint: Fingerprint
    patience_seconds: float = 60.0
    """How long to wait for a host while there is none."""
    _hosts: dict[str, _Host] = field(default_factory=dict)
    _tasks: dict[str, _Task] = field(default_factory=dict)
    _questions: set[str] = field(default_factory=set)
    _silent: set[str] = field(default_factory=set)
    """Tasks that have ended, whose last lines may be on their way."""
    _fresh: dict[int, Waiting] = field(default_factory=dict)
    _begun: dict[int, Waiting] = field(default_factory=dict)
    """Units that wait, by number. Some host has begun the second kind."""
    _assigned: dict[int, tuple[str, int]] = field(default_factory=dict)
    _attempts: dict[int, int] = field(default_factory=dict)
    """Last attempt at each unit that has records; -1 if they are only reasons for having no result."""
    _losses: dict[int, int] = field(default_factory=dict)
    _given_up: set[int] = field(default_factory=set)
    _left_seconds: float = 0.0
    _looked_at: float = 0.0

    def collect(self) -> None:
        """Have every unit measured that is not complete. Raises FleetLost."""
        completed = self.home.completed()
        for one in (*self.home.partial(), *(records := self.home.records())):
            attempt = one.attempt if one.host else -1
            self._attempts[one.block] = max(attempt, self._attempts.get(one.block, -1))
        self._assigned = {one.block: (one.host, one.attempt) for one in records if one.host}
        there = Counter(one.block for one in records if one.host)
        for unit in units(self.plan.run):
            if unit.number not in completed:
                begun = self._assigned.get(unit.number, ("", 0))[0]
                self._wait(Waiting(unit, unit_seconds(self.plan, unit), begun))
                self.watcher.extended(len(unit.cells) - there[unit.number])
        self._left_seconds = sum(one.seconds for one in self._waiting())
        alone_since = self.cluster.now()
        while self._fresh or self._begun or any(host.task for host in self._hosts.values()):
            for event in self.cluster.wait(1.0):
                self._handle(event)
            self._end_silent_tasks()
            self._leave_silent_workers()
            self._place()
            if any(host.workers for host in self._hosts.values()) or self._asking():
                alone_since = self.cluster.now()
                if not self._can_go_on():
                    self._skip_the_rest()
            elif self.cluster.now() - alone_since > self.patience_seconds:
                raise FleetLost("no host is left\n  All records so far are kept. Start hosts, then resume the run.")
        self._forget()

    def _handle(self, event: Event) -> None:
        if isinstance(event, Joined):
            name = f"describe {event.worker}"
            self._tasks[name] = _Task(event.worker, heard_at=self.cluster.now())
            self._questions.add(name)
            request = Request(task="describe", run=_plain(self.home.run))
            self.cluster.start(name, event.worker, request.model_dump_json())
        elif isinstance(event, NotStarted):
            self.watcher.refused(event.worker, printable(event.reason))
        elif isinstance(event, Left):
            self._leave(event.worker)
        elif task := self._tasks.get(event.task):
            if isinstance(event, Ended):
                self._end(event, task)
            else:
                self._hear(event, task)

    def _waiting(self) -> list[Waiting]:
        return [*self._fresh.values(), *self._begun.values()]

    def _wait(self, one: Waiting) -> None:
        (self._begun if one.host else self._fresh)[one.unit.number] = one

    def _asking(self) -> bool:
        return any(not self._tasks[name].over for name in self._questions)

    # --- hosts

    def _hear(self, said: Said, task: _Task) -> None:
        task.heard_at = self.cluster.now()
        task.answers += 1
        if task.unit and task.answers > MOST_ANSWERS * (len(task.unit.cells) + 1):
            self._lose(task, f"it sent {task.answers} lines about {len(task.unit.cells)} cells")
            return
        if len(said.line) > MOST_BYTES:
            self._lose(task, f"its answer has {len(said.line):,} characters")
            return
        try:
            answer = Answer.model_validate_json(said.line)
        except ValidationError as error:
            self._lose(task, f"its answer is not one of zoomgrad's: {first_of(error)}")
            return
        if task.unit is None:
            if task.over:
                return
            task.over = True
            if answer.facts and answer.fingerprint:
                self._admit(task.worker, answer.facts, answer.fingerprint)
            return
        if answer.record:
            self._take(answer.record, answer.suite, task)
        elif answer.vouching and answer.vouching.workload in {cell.workload for cell in task.unit.cells}:
            self.home.keep_vouching(task.host, answer.vouching)
        elif answer.done and self._assigned.get(task.unit.number) == (task.host, task.attempt) and not task.over:
            if absent := task.unit.cells_without(task.records, answer.given_up):
                self._lose(task, f"it says that its block is complete, but sent no record of {absent[0]}")
                return
            self.watcher.extended(len(task.records) - len(task.unit.cells))
            self.home.complete(task.unit.number, task.host, task.attempt)
            self._free(task)

    def _admit(self, worker: str, facts: HostFacts, there: Fingerprint) -> None:
        run = self.home.run
        try:
            check(self.fingerprint, there, run.commit)
        except Refused as refused:
            self.watcher.refused(worker, str(refused))
            return
        known = next((name for name, host in run.hosts.items() if host.identity == facts.identity), "")
        name = known or f"host-{len(run.hosts) + 1}"
        if known and (change := moved(run.hosts[known].machine, facts.machine)):
            self.watcher.refused(worker, f"it has changed since it joined the run ({change})\n  Start a new run.")
            return
        usable, other = same_interpreters(run, facts)
        if not usable or run.reference_interpreter not in usable:
            lacking = run.reference_interpreter if run.reference_interpreter not in facts.interpreters else ""
            what = (
                f"it lacks {lacking}"
                if lacking
                else f"its interpreters differ: {'; '.join(map(' is '.join, other.items()))}"
            )
            remedy = f"Install it there: uv python install {run.reference_interpreter}"
            self.watcher.refused(worker, f"{what}\n  {remedy}")
            return
        if name not in self._hosts:
            self.home.admit(name, facts)
            self._hosts[name] = _Host(name, usable, facts.shared)
            self.watcher.admitted(name, facts)
        self._hosts[name].workers.append(worker)

    def _leave(self, worker: str, reason: str = "") -> None:
        for task in self._tasks.values():
            if task.worker == worker and not task.over:
                self._lose(task, reason or f"its worker {worker} is gone")
        for host in self._hosts.values():
            if worker in host.workers:
                host.workers.remove(worker)

    def _leave_silent_workers(self) -> None:
        now = self.cluster.now()
        if now - self._looked_at < GRACE_SECONDS:
            return
        self._looked_at = now
        limit = SILENCE_SECONDS + 10 * self.home.run.settings.timeout_seconds
        busy = [*self._questions, *(host.task for host in self._hosts.values() if host.task)]
        for task in [self._tasks[name] for name in busy]:
            if not task.over and now - task.heard_at > limit:
                self._leave(task.worker, f"it said nothing for {limit / 60:.0f} min; is another run in progress there?")

    # --- units

    def _place(self) -> None:
        now = self.cluster.now()
        idle = [one for one in self._hosts.values() if one.workers and not one.task and one.rests_until <= now]
        if not idle or not (self._fresh or self._begun):
            return
        places = {
            host.name: Place(
                host.name,
                host.interpreters,
                host.pace,
                max(0.0, host.began_at + host.seconds * host.pace - now) if host.task else 0.0,
            )
            for host in self._hosts.values()
            if host.workers
        }
        for host in idle:
            if chosen := choose(places[host.name], self._fresh.values(), self._begun.values(), places):
                self._begin(host, chosen)
                places[host.name] = Place(host.name, host.interpreters, host.pace, chosen.seconds * host.pace)

    def _begin(self, host: _Host, chosen: Waiting) -> None:
        number = chosen.unit.number
        self._fresh.pop(number, None)
        self._begun.pop(number, None)
        before, attempt = self._assigned.get(number, ("", 0))
        if before != host.name:
            attempt = self._anew(number, host.name)
        host.task = f"{number} attempt {attempt} on {host.name}, {self._losses.get(number, 0)} lost"
        host.began_at, host.seconds = self.cluster.now(), chosen.seconds
        self._tasks[host.task] = _Task(host.workers[0], chosen.unit, host.name, attempt, heard_at=self.cluster.now())
        request = Request(task="measure", run=_plain(self.home.run), unit=chosen.unit)
        self.cluster.start(host.task, host.workers[0], request.model_dump_json())

    def _anew(self, number: int, host: str) -> int:
        """Begin a unit anew on a host, without records. Return the number of the attempt."""
        if number in self._attempts:
            self.watcher.extended(self.home.set_aside(number))
        self._attempts[number] = self._attempts.get(number, -1) + 1
        self._assigned[number] = (host, self._attempts[number])
        return self._attempts[number]

    def _take(self, record: Record, suite: str, task: _Task) -> None:
        """Keep a record that a host sent. Who sent it is for us to say, and so is what it may be about."""
        assert task.unit
        if record.block != task.unit.number or record.cell not in task.unit.cells:
            self._lose(task, f"it sent a record of {record.cell}, block {record.block}, which it was not asked for")
            return
        if len(record.model_dump_json(indent=1).encode()) > MOST_RECORD_BYTES:
            self._lose(task, f"its record of {record.cell} is too long to be kept")
            return
        record = record.model_copy(
            update={"host": task.host, "attempt": task.attempt, "shared_host": self._hosts[task.host].shared}
        )
        if self._assigned.get(record.block) != (task.host, task.attempt):
            self.home.keep_aside(record)
            return
        before = self.home.kept(record.cell, record.block)
        # As text, because NaN differs from itself.
        if not before or before.model_dump_json() != record.model_dump_json():
            if before and before.host:
                # The host has lost its store, or the cell would not have been measured again: so the block is another.
                task.attempt = self._anew(record.block, task.host)
                task.records.pop(record.cell, None)  # it was sent twice, so this one is aside now
                task.records = {cell: _of_attempt(one, task.attempt) for cell, one in task.records.items()}
                for one in task.records.values():
                    self.home.keep(one)
                self.watcher.extended(-len(task.records))
                record = _of_attempt(record, task.attempt)
            self.home.keep(record)
            self.watcher.finished(record, self._seconds_left())
        task.records[record.cell] = record
        if suite:
            self.home.keep_times(task.host, record.cell, suite)

    def _free(self, task: _Task) -> None:
        task.over = True
        host = self._hosts[task.host]
        host.task = ""
        host.done += host.seconds
        host.taken += self.cluster.now() - host.began_at
        self._left_seconds -= host.seconds

    def _end(self, ended: Ended, task: _Task) -> None:
        if task.over:
            return
        if ended.failure:
            self._lose(task, ended.failure)
        else:
            task.ended_at = self.cluster.now()
            self._silent.add(ended.task)

    def _end_silent_tasks(self) -> None:
        for name in list(self._silent):
            task = self._tasks[name]
            if task.over:
                self._silent.discard(name)
            elif self.cluster.now() - (task.ended_at or 0.0) > GRACE_SECONDS:
                self._lose(task, "its last lines did not arrive")

    def _lose(self, task: _Task, reason: str) -> None:
        """Take back a unit from a host. The reason may be a stranger's text."""
        if task.over:
            return
        task.over = True
        reason = printable(reason)
        if task.unit is None:
            self.watcher.refused(task.worker, reason)
            return
        number, host = task.unit.number, self._hosts[task.host]
        host.task, host.rests_until = "", self.cluster.now() + RESTING_SECONDS
        self.watcher.lost(task.host, number, reason)
        self._losses[number] = self._losses.get(number, 0) + 1
        if self._losses[number] > MOST_LOSSES:
            self._skip(task.unit, f"{self._losses[number]} hosts were lost with its block; the last: {reason}")
        else:
            self._wait(Waiting(task.unit, host.seconds, task.host))

    def _can_go_on(self) -> bool:
        """Whether a unit is being measured, or some host can take one of those that wait."""
        there = [host for host in self._hosts.values() if host.workers]
        if not (self._fresh or self._begun) or self._asking() or any(host.task for host in there):
            return True
        return any(one.unit.interpreter in host.interpreters for host in there for one in self._waiting())

    def _skip_the_rest(self) -> None:
        waiting = self._waiting()
        self._fresh.clear()
        self._begun.clear()
        for one in waiting:
            self._skip(one.unit, f"no host of the fleet has {one.unit.interpreter}")

    def _skip(self, unit: Unit, reason: str) -> None:
        """Record why cells of a unit have no result. A resumed run tries them again."""
        self._given_up.add(unit.number)
        skipped = [cell for cell in unit.cells if cell.interpreter == unit.interpreter]
        self.watcher.extended(self.home.set_aside(unit.number) + len(skipped) - len(unit.cells))
        self._assigned.pop(unit.number, None)
        for cell in skipped:
            record = Record(
                cell=cell,
                block=unit.number,
                status="skipped",
                reason=reason,
                remedy="Add a host that can measure it, then resume the run.",
                started_at=datetime.now(UTC),
            )
            self.home.keep(record)
            self.watcher.finished(record, self._seconds_left())

    def _seconds_left(self) -> float:
        """Estimated time until the run ends: what is left, at the pace so far, over all hosts."""
        there = [one for one in self._hosts.values() if one.workers]
        done, taken = sum(one.done for one in there), sum(one.taken for one in there)
        now = self.cluster.now()
        spent = sum(min(now - one.began_at, one.seconds * one.pace) for one in there if one.task)
        # As in a run on one machine, the plan's estimate counts like one minute of finished work.
        pace = (taken + 60.0) / (done + 60.0)
        return max(0.0, (self._left_seconds * pace - spent) / max(1, len(there)))

    def _forget(self) -> None:
        """Have the hosts remove their stores of a complete run. Those that do not answer keep some megabytes."""
        if self._given_up:
            return
        names = []
        for host in self._hosts.values():
            if host.workers:
                names.append(f"forget on {host.name}")
                self._tasks[names[-1]] = _Task(host.workers[0])
                request = Request(task="forget", run=_plain(self.home.run))
                self.cluster.start(names[-1], host.workers[0], request.model_dump_json())
        until = self.cluster.now() + FORGETTING_SECONDS
        while self.cluster.now() < until and not all(self._tasks[name].over for name in names):
            for event in self.cluster.wait(1.0):
                if isinstance(event, Said | Ended) and event.task in names:
                    self._tasks[event.task].over = True


def _of_attempt(record: Record, attempt: int) -> Record:
    return record.model_copy(update={"attempt": attempt})


def _plain(run: Run) -> Run:
    """The run as a host gets it: without what the client knows of other hosts."""
    return run.model_copy(update={"hosts": {}})
