"""The client's loop: units out to hosts, records home, until every unit is complete.

Each host that joins describes itself, and takes part if it runs the same code. Then there are as many units under way
as there are hosts. dask chooses the host of each, and repeats a unit elsewhere if its host is lost.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from distributed import Client, LocalCluster, Security, wait
from pydantic import ValidationError

from zoomgrad.harness.fleet.carrier import carry
from zoomgrad.harness.fleet.host import Answer, Request, forget
from zoomgrad.harness.fleet.unit import Unit, unit_seconds, units
from zoomgrad.harness.fleet.where import Where, secret_file
from zoomgrad.harness.machine.project import code_digest
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.results.comparability import moved
from zoomgrad.results.files import first_of
from zoomgrad.results.fleet.home import Complete, Home
from zoomgrad.results.places import IS_CHECKOUT, ROOT
from zoomgrad.results.printable import printable
from zoomgrad.results.record import HostFacts, Record

CONNECTING_SECONDS = 10
LOOKING_SECONDS = 1.0
"""Time between two looks at the scheduler's list of workers."""
PATIENCE_SECONDS = 60.0
"""How long to wait for a host while there is none."""
MOST_RETRIES = 2
"""How often a unit begins again after its host process failed. dask itself gives up after a unit lost several hosts."""


class FleetLost(Exception):
    """Nobody is left to measure. The text has the reason and, on a second line, the remedy."""


class Watcher(Protocol):
    """Receives what happens. The command line displays it."""

    def admitted(self, host: str, facts: HostFacts) -> None: ...
    def refused(self, worker: str, reason: str) -> None: ...
    def left(self, host: str) -> None: ...
    def finished(self, record: Record, seconds_left: float) -> None: ...
    def extended(self, cells: int) -> None: ...


@contextlib.contextmanager
def connected(where: Where) -> Iterator[Client]:
    """Yield a client of the scheduler at that place. Local workers end with the block. Raises FleetLost."""
    with contextlib.ExitStack() as stack:
        if where.kind == "local":
            secret = Security.temporary()
            cluster = LocalCluster(
                n_workers=where.count,
                threads_per_worker=1,
                host="127.0.0.1",
                protocol="tls://",
                security=secret,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
            address: Any = stack.enter_context(cluster)
        else:
            address, secret = where.address, None
            if where.kind == "tls":
                file = str(secret_file())
                secret = Security(require_encryption=True, tls_ca_file=file, tls_client_cert=file, tls_client_key=file)
        try:
            client = Client(address, security=secret, timeout=CONNECTING_SECONDS)
        except (OSError, TimeoutError) as error:
            raise FleetLost(
                f"no scheduler answers at {where.address} ({error})\n  Start one there: docs/fleet.md shows how."
            ) from error
        yield stack.enter_context(client)


@dataclass(frozen=True)
class _Task:
    """What is under way: a unit, or the description of a worker."""

    workers: tuple[str, ...]
    """Addresses of the workers that may do it."""
    unit: Unit | None = None


@dataclass
class Collector:
    """Carries out a plan on the workers of a scheduler."""

    plan: Plan
    home: Home
    client: Client
    watcher: Watcher
    shares_machine: bool = False
    """Whether all workers are on this machine, for a test: their times prove nothing."""
    _workers: set[str] = field(default_factory=set)
    """Addresses of the workers that are there."""
    _names: dict[str, str] = field(default_factory=dict)
    """Address of each worker that was ever admitted -> its host's name."""
    _known: set[str] = field(default_factory=set)
    """Workers that were asked to describe themselves."""
    _tasks: dict[Any, _Task] = field(default_factory=dict)
    """By dask's future."""
    _waiting: list[Unit] = field(default_factory=list)

    def collect(self) -> None:
        """Have every unit measured that is not complete. Raises FleetLost."""
        self._waiting = [one for one in units(self.plan.run) if one.number not in self.home.completed]
        self.watcher.extended(sum(len(unit.cells) for unit in self._waiting))
        alone_since = time.monotonic()
        while self._waiting or self._under_way():
            self._look()
            self._begin()
            if self._tasks:
                alone_since = time.monotonic()
                with contextlib.suppress(TimeoutError):
                    wait(list(self._tasks), timeout=LOOKING_SECONDS, return_when="FIRST_COMPLETED")
            else:
                time.sleep(LOOKING_SECONDS)
            for future in [one for one in self._tasks if one.done()]:
                self._end(future, self._tasks.pop(future))
            if time.monotonic() - alone_since > PATIENCE_SECONDS:
                raise FleetLost("no host is left\n  All records so far are kept. Start hosts, then resume the run.")
        with contextlib.suppress(Exception):  # a host that has just left keeps some megabytes
            self.client.run(forget, self.home.run.id, workers=self._hosts())

    def _hosts(self) -> list[str]:
        """Admitted workers that are there."""
        return [worker for worker in self._names if worker in self._workers]

    def _under_way(self) -> list[Unit]:
        return [task.unit for task in self._tasks.values() if task.unit]

    def _able(self, unit: Unit) -> tuple[str, ...]:
        """Workers that have the unit's interpreter."""
        hosts = self.home.run.hosts
        return tuple(one for one in self._hosts() if unit.interpreter in hosts[self._names[one]].interpreters)

    def _look(self) -> None:
        """Ask new workers for their facts. Take back the tasks that no worker is left for."""
        try:
            if self.client.status != "running":
                raise OSError(f"the client is {self.client.status}")
            there = set(self.client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, TimeoutError) as error:
            raise FleetLost(
                f"the scheduler is gone ({error})\n  All records so far are kept. Start it again, then resume the run."
            ) from error
        for worker in self._hosts():
            if worker not in there:
                self.watcher.left(self._names[worker])
        self._workers = there
        for worker in there - self._known:
            self._known.add(worker)
            self._submit(_Task((worker,)))
        for future, task in list(self._tasks.items()):
            # dask would wait until one of these workers came back.
            if not there.intersection(task.workers) and not future.done():
                del self._tasks[future]
                future.cancel()
                if task.unit:
                    self._waiting.insert(0, task.unit)

    def _begin(self) -> None:
        """Submit as many units as hosts are free. Raises FleetLost if no host can measure what is left."""
        able = [unit for unit in self._waiting if self._able(unit)]
        for unit in able[: max(0, len(self._hosts()) - len(self._under_way()))]:
            self._waiting.remove(unit)
            self._submit(_Task(self._able(unit), unit))
        if self._hosts() and self._waiting and not self._tasks:
            lacking = self._waiting[0].interpreter
            remedy = f"Install it there: uv python install {lacking}. Then resume the run."
            raise FleetLost(f"no host of the fleet has {lacking}\n  {remedy}")

    def _submit(self, task: _Task) -> None:
        plain = self.home.run.model_copy(update={"hosts": {}})
        request = Request(run=plain, unit=task.unit).model_dump(mode="json")
        future = self.client.submit(
            carry,
            request,
            self.shares_machine,
            key=f"zoomgrad-{secrets.token_hex(8)}",
            workers=list(task.workers),
            allow_other_workers=False,
            retries=MOST_RETRIES if task.unit else 0,
            pure=False,
        )
        self._tasks[future] = task

    def _end(self, future: Any, task: _Task) -> None:
        try:
            worker, text = future.result()
            answer = Answer.model_validate_json(text)
            if task.unit:
                self._keep(answer, task.unit, self._names[worker])
            else:
                self._admit(answer, worker)
        except FleetLost:
            raise
        except Exception as error:  # a host may fail in any way, and dask has errors of its own
            reason = first_of(error) if isinstance(error, ValidationError) else str(error) or repr(error)
            if task.unit is None:
                self.watcher.refused(task.workers[0], printable(reason))
                return
            what = f"block {task.unit.number + 1} failed: {printable(reason)}"
            raise FleetLost(f"{what}\n  All records so far are kept. End that host, then resume the run.") from error

    def _keep(self, answer: Answer, unit: Unit, host: str) -> None:
        facts = self.home.run.hosts[host]
        for record in answer.records:
            if record.block != unit.number or record.cell not in unit.cells:
                raise ValueError(f"{host} sent a record of {record.cell}, block {record.block}, which nobody asked for")
        # Who sent a record is for the client to say.
        update = {"host": host, "shared_host": facts.shared}
        records = tuple(record.model_copy(update=update) for record in answer.records)
        self.home.keep(Complete(block=unit.number, host=host, records=records, vouchings=answer.vouchings))
        left = sum(unit_seconds(self.plan, one) for one in (*self._waiting, *self._under_way()))
        for record in records:
            self.watcher.finished(record, left / max(1, len(self._hosts())))
        self.watcher.extended(len(records) - len(unit.cells))

    def _admit(self, answer: Answer, worker: str) -> None:
        """Let a worker take part. Raises ValueError, with the remedy on a second line."""
        run, facts = self.home.run, answer.facts
        if facts is None or answer.code != code_digest():
            raise ValueError(f"its code or its lock files differ from the client's\n  {_remedy(run.commit)}")
        known = next((name for name, host in run.hosts.items() if host.identity == facts.identity), "")
        if known and (change := moved(run.hosts[known].machine, facts.machine)):
            raise ValueError(f"it has changed since it joined the run ({change})\n  Start a new run.")
        usable = {
            name: version
            for name, version in facts.interpreters.items()
            if name not in run.interpreters or run.interpreters[name].version in ("", version)
        }
        reference = run.reference_interpreter
        if reference not in usable:
            has = facts.interpreters.get(reference, "no such interpreter")
            remedy = f"uv python install {run.interpreters[reference].version or reference}"
            raise ValueError(f"the run needs {reference}, and it has {has}\n  Install it there: {remedy}")
        name = known or f"host-{len(run.hosts) + 1}"
        self._names[worker] = name
        self.home.admit(name, facts.model_copy(update={"interpreters": usable, "shared": self.shares_machine}))
        self.watcher.admitted(name, facts)


def _remedy(commit: str) -> str:
    """How to bring the client's code to a host. commit: the client's, `+` if its files differ from it."""
    if commit and not commit.endswith("+"):
        return f"Run there, in the checkout: git fetch && git checkout {commit}"
    if IS_CHECKOUT:
        return f"Copy this checkout there: rsync -a --delete --exclude .zoomgrad {ROOT}/ HOST:FOLDER/"
    return "Install the same release of zoomgrad there."
