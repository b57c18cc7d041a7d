"""The client: all missing blocks out to dask's workers, their records home.

dask chooses the host of each block, repeats a block that failed, and repeats it elsewhere if its host is lost. A host
that differs from the client or from the other hosts ends the run, with the remedy.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from distributed import Client, LocalCluster, Security
from pydantic import ValidationError

from zoomgrad.harness.fleet.carrier import carry
from zoomgrad.harness.fleet.home import Complete, Home
from zoomgrad.harness.fleet.host import Answer, forget
from zoomgrad.harness.fleet.where import Where
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.results.comparability import same_type
from zoomgrad.results.files import first_of
from zoomgrad.results.printable import printable
from zoomgrad.results.record import HostFacts, Record

CONNECTING_SECONDS = 10
LOOKING_SECONDS = 1.0
"""Time between two looks at the blocks under way."""
PATIENCE_SECONDS = 60.0
"""How long to wait for a host while there is none."""
MOST_RETRIES = 2
"""How often a block begins again after its host process failed. dask itself gives up after a block lost four hosts."""
RESUME = "All records so far are kept"


class FleetLost(Exception):
    """Nobody is left to measure. The text has the reason and, on a second line, the remedy."""


class Watcher(Protocol):
    """Receives what happens. The command line displays it."""

    def admitted(self, host: str, facts: HostFacts) -> None: ...
    def finished(self, record: Record, seconds_left: float) -> None: ...
    def extended(self, cells: int) -> None: ...


@contextlib.contextmanager
def connected(where: Where) -> Iterator[Client]:
    """Yield a client of the scheduler at that place. Local workers end with the block. Raises FleetLost."""
    with contextlib.ExitStack() as stack:
        address: Any = where.address
        security = None  # dask's own configuration
        if where.kind == "local":
            security = Security.temporary()
            cluster = LocalCluster(
                n_workers=where.count,
                threads_per_worker=1,
                host="127.0.0.1",
                protocol="tls://",
                security=security,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
            address = stack.enter_context(cluster)
        try:
            client = Client(address, security=security, timeout=CONNECTING_SECONDS)
        except (OSError, TimeoutError, TypeError) as error:  # dask raises the last without certificates
            raise FleetLost(
                f"no scheduler answers at {where.address} ({error})\n  Start one there: docs/fleet.md shows how."
            ) from error
        yield stack.enter_context(client)


@dataclass
class Collector:
    """Carries out a plan on the workers of a scheduler."""

    plan: Plan
    home: Home
    client: Client
    watcher: Watcher
    shares_machine: bool = False
    """Whether all workers are on this machine, for a test: their times prove nothing."""

    def collect(self) -> None:
        """Have every block measured that is not complete. Raises FleetLost."""
        run = self.plan.run
        missing = [block for block in range(run.blocks) if block not in self.home.completed]
        self.watcher.extended(len(missing) * len(run.cells))
        request = run.model_copy(update={"hosts": {}}).model_dump_json()
        futures = {
            self.client.submit(
                carry, request, block, self.shares_machine, priority=-block, retries=MOST_RETRIES, pure=False
            ): block
            for block in missing
        }
        alone_since = time.monotonic()
        while futures:
            time.sleep(LOOKING_SECONDS)
            for future in [one for one in futures if one.done()]:
                block = futures.pop(future)
                self._keep(block, self._answer(block, future), list(futures.values()))
            if self._count_workers():
                alone_since = time.monotonic()
            elif time.monotonic() - alone_since > PATIENCE_SECONDS:
                raise FleetLost(f"no host is left\n  {RESUME}. Start hosts, then resume the run.")
        with contextlib.suppress(Exception):  # a host that has just left keeps some megabytes
            self.client.run(forget, run.id)

    def _count_workers(self) -> int:
        try:
            if self.client.status != "running":
                raise OSError(f"the client is {self.client.status}")
            return len(self.client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, TimeoutError) as error:
            raise FleetLost(
                f"the scheduler is gone ({error})\n  {RESUME}. Start it again, then resume the run."
            ) from error

    def _answer(self, block: int, future: Any) -> Answer:
        """What a host answered about that block. Raises FleetLost."""
        try:
            worker, text = future.result()
            answer = Answer.model_validate_json(text)
        except Exception as error:  # a host may fail in any way, and dask has errors of its own
            reason = first_of(error) if isinstance(error, ValidationError) else str(error) or repr(error)
            remedy = f"{RESUME}. End that host, then resume the run."
            raise FleetLost(f"block {block + 1} failed: {printable(reason)}\n  {remedy}") from error
        if answer.refusal or not answer.facts:
            raise FleetLost(f"{worker}: {answer.refusal or 'it does not describe itself'}")
        return answer

    def _keep(self, block: int, answer: Answer, others: list[int]) -> None:
        """Keep a block's records. others: blocks that are still under way. Raises FleetLost."""
        run, facts = self.home.run, answer.facts
        assert facts
        host = self._admitted(facts)
        for record in answer.records:
            if record.block != block or record.cell not in run.cells:
                raise FleetLost(
                    f"{host} sent a record of {record.cell.key}, block {record.block + 1}, which nobody asked for\n"
                    f"  {RESUME}. End that host, then resume the run."
                )
        # Who sent a record is for the client to say.
        update = {"host": host, "shared_host": self.shares_machine}
        records = tuple(record.model_copy(update=update) for record in answer.records)
        self.home.keep(Complete(block=block, host=host, records=records, vouchings=answer.vouchings))
        left = sum(self.plan.block_seconds(cell, other) for other in others for cell in run.cells)
        for record in records:
            self.watcher.finished(record, left / len(self.home.run.hosts))
        self.watcher.extended(len(records) - len(run.cells))

    def _admitted(self, facts: HostFacts) -> str:
        """The host's name in the run, which it gets with its first block. Raises FleetLost."""
        hosts = self.home.run.hosts
        for name, known in hosts.items():
            if not same_type(known.machine, facts.machine):
                raise FleetLost(
                    f"a host differs from {name} in its processor, system or compilers: {_about(facts)}\n"
                    f"  {RESUME}. End that host, then resume the run; or start a run of its own there."
                )
            if known.identity == facts.identity:
                return name
        name = f"host-{len(hosts) + 1}"
        self.home.admit(name, facts.model_copy(update={"shared": self.shares_machine}))
        self.watcher.admitted(name, facts)
        return name


def _about(facts: HostFacts) -> str:
    return "; ".join(f"{name} {value}" for name, value in facts.machine.items())
