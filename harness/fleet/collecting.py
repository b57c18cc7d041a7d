"""The client of a fleet: send missing blocks to dask's workers, and collect the records. Also the task for a worker.

dask chooses the host of each block, repeats a block that failed, and repeats it elsewhere if its host is lost. A host
that differs from the client or from the other hosts ends the run, with the remedy.

A block is kept only as a whole. The run's `hosts` name the complete blocks, and are written after a block's records. If
the client is killed before that, the resumed run measures the block again.
"""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import Client, get_worker
from filelock import FileLock, Timeout
from pydantic import ValidationError

from zoomgrad.harness.fleet.host import ANSWER, RUN, Answer, forget
from zoomgrad.harness.machine.project import with_project, worker_command
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.harness.run.schedule import Observer
from zoomgrad.results.comparability import same_type
from zoomgrad.results.files import Unreadable, first_of, inside
from zoomgrad.results.printable import printable
from zoomgrad.results.record import HostFacts, Run
from zoomgrad.results.store import Store

CONNECTING_SECONDS = 10
LOOKING_SECONDS = 1.0
"""Time between two looks at the blocks under way."""
PATIENCE_SECONDS = 60.0
"""How long to wait for a host while there is none."""
MOST_RETRIES = 2
"""How often a block begins again after its host process failed. dask itself gives up after a block lost four hosts."""
WATCHING_SECONDS = 2.0
TAIL_CHARACTERS = 600

FOREIGN = ("DASK_", "MALLOC_", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Starts of the names of variables that dask and its nanny export."""
TALKING = ("heartbeat", "keep-alive")
"""What a dask worker must go on doing while its host measures. It samples its threads a hundred times a second."""


class FleetLost(Unreadable):
    """Nobody is left to measure. The text has the reason and, on a second line, the remedy."""


class HostFailed(Exception):
    """The host process failed. The text says why."""


@contextlib.contextmanager
def connected(address: str) -> Iterator[Client]:
    """Yield a client of the scheduler at that address. Raises FleetLost."""
    try:
        client = Client(address, timeout=CONNECTING_SECONDS)
    except (OSError, TimeoutError, TypeError) as error:  # dask raises the last without certificates
        remedy = "Start one there: docs/fleet.md shows how."
        raise FleetLost(f"no scheduler answers at {address} ({error})\n  {remedy}") from error
    with client:
        yield client


@dataclass
class Collector:
    """Carries out a plan on the workers of a scheduler, and keeps what they send in a store."""

    plan: Plan
    store: Store
    client: Client
    observer: Observer

    def collect(self) -> None:
        """Have every block measured that is not complete. Raises FleetLost."""
        try:
            # A second client would delete the first one's records of incomplete blocks.
            with FileLock(inside(self.store.folder, "client.lock"), timeout=0):
                self._collect(self.store.run)
        except Timeout:
            raise FleetLost(
                f"{self.store.folder.name}: another client collects its records\n  Wait until that one has ended."
            ) from None

    def _collect(self, run: Run) -> None:
        complete = {block for facts in run.hosts.values() for block in facts.blocks}
        for record in self.store.records():
            if record.block not in complete:
                self.store.forget(record)
        missing = [block for block in range(run.blocks) if block not in complete]
        text = run.model_copy(update={"hosts": {}}).model_dump_json()
        futures = {
            self.client.submit(carry, text, block, priority=-block, retries=MOST_RETRIES, pure=False): block
            for block in missing
        }
        while futures:
            time.sleep(LOOKING_SECONDS)
            for future in [one for one in futures if one.done()]:
                block = futures.pop(future)
                self._keep(block, self._answer(block, future), list(futures.values()))
            try:
                self.client.wait_for_workers(1, timeout=PATIENCE_SECONDS)
            except (OSError, TimeoutError) as error:
                raise FleetLost(f"no host or no scheduler is left ({error})\n  Start some, then resume.") from error
        with contextlib.suppress(Exception):  # a host that has just left keeps some megabytes
            self.client.run(forget, run.id)

    def _answer(self, block: int, future: Any) -> Answer:
        """What a host answered about that block. Raises FleetLost."""
        try:
            return Answer.model_validate_json(future.result())
        except Exception as error:  # a host may fail in any way, and dask has errors of its own
            reason = first_of(error) if isinstance(error, ValidationError) else str(error) or repr(error)
            remedy = "Mend or end that host, then resume the run."
            raise FleetLost(f"block {block + 1} failed: {printable(reason)}\n  {remedy}") from error

    def _keep(self, block: int, answer: Answer, others: list[int]) -> None:
        """Keep a block's records. others: blocks that are still under way. Raises FleetLost."""
        host = self._admitted(answer.facts)
        run = self.store.run
        for record in answer.records:
            if record.block != block or record.cell not in run.cells:
                raise FleetLost(
                    f"{host} sent a record of {record.cell.key}, block {record.block + 1}, which nobody asked for\n"
                    f"  End that host, then resume the run."
                )
        left = sum(self.plan.block_seconds(cell, other) for other in others for cell in run.cells)
        for vouching in answer.vouchings:
            if not self.store.vouching(vouching.workload):
                self.store.write_vouching(vouching)
        for record in answer.records:
            named = record.model_copy(update={"host": host})  # who sent a record is for the client to say
            self.store.write(named)
            self.observer.finished(named, left / len(run.hosts))
        self._write(host, run.hosts[host].model_copy(update={"blocks": (*run.hosts[host].blocks, block)}))

    def _admitted(self, facts: HostFacts) -> str:
        """The host's name in the run, which it gets with its first block. Raises FleetLost."""
        hosts = self.store.run.hosts
        for name, known in hosts.items():
            if not same_type(known.machine, facts.machine):
                about = "; ".join(f"{fact} {value}" for fact, value in facts.machine.items())
                raise FleetLost(
                    f"a host differs from {name} in its processor, system or compilers: {about}\n"
                    f"  End that host, then resume the run; or start another run on that host."
                )
            if known.identity == facts.identity:
                return name
        name = f"host-{len(hosts) + 1}"
        self._write(name, facts.model_copy(update={"blocks": ()}))
        return name

    def _write(self, name: str, facts: HostFacts) -> None:
        """Add a host to the run, or change it. Its machine stands for all, because all are of one type."""
        run = self.store.run
        self.store.write_run(
            run.model_copy(update={"hosts": {**run.hosts, name: facts}, "machine": dict(facts.machine)})
        )


# --- on the host ------------------------------------------------------------------------------------------------------


def carry(run: str, block: int) -> str:
    """The answer of this worker's host. Runs inside a dask worker. Raises HostFailed."""
    worker: Any = get_worker()
    key = worker.get_current_task()
    worker.loop.add_callback(_be_quiet, worker)

    def is_wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state == "executing"

    return run_host(run, block, is_wanted)


def run_host(run: str, block: int, is_wanted: Callable[[], bool]) -> str:
    """Let a host process measure that block of the run, and return its answer. Raises HostFailed.

    is_wanted: whether somebody still waits for the answer; asked every few seconds.
    """
    with tempfile.TemporaryDirectory(prefix="zoomgrad-") as name:
        folder = Path(name)
        (folder / RUN).write_text(run, encoding="utf-8")
        with (folder / "output").open("w+b") as output:
            process = subprocess.Popen(  # noqa: S603  (a list of arguments)
                worker_command(Path(sys.executable), "zoomgrad.harness.fleet.host", name, str(block)),
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            while process.poll() is None:
                if not is_wanted():
                    process.kill()
                time.sleep(WATCHING_SECONDS)
        if process.returncode:
            lines = (folder / "output").read_text(errors="replace").strip().splitlines()
            tail = " | ".join(lines[-3:])[-TAIL_CHARACTERS:] or "no output"
            raise HostFailed(f"{platform.node()}: the host process ended with code {process.returncode}: {tail}")
        return (folder / ANSWER).read_text(encoding="utf-8")


def clean_environment() -> dict[str, str]:
    """The environment of a host process: that of the dask worker, without what dask has added."""
    return with_project({name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)})


def _be_quiet(worker: Any) -> None:
    """Stop what a dask worker does many times a second."""
    for name, callback in worker.periodic_callbacks.items():
        if name not in TALKING:
            callback.stop()
