"""dask's Client as a `cluster.Cluster`."""

from __future__ import annotations

import queue
import secrets
import time
from collections.abc import Sequence
from typing import Any

from distributed import Client
from distributed.comm import CommClosedError

from harness.fleet.carrier import Failed, carry_on_dask
from harness.fleet.cluster import Ended, Event, FleetLost, Joined, Left, Said
from harness.fleet.quiet import RESOURCE

LOOKING_SECONDS = 1.0
"""Time between two looks at the scheduler's list of workers. It asks the scheduler only, and no host."""


class DaskCluster:
    """The workers of one scheduler that offer a slot."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._events: queue.Queue[Event] = queue.Queue()
        self._workers: set[str] = set()
        self._futures: dict[str, Any] = {}
        self._looked_at = float("-inf")
        # Two clients of one scheduler must not read each other's records.
        self._topic = f"zoomgrad-{secrets.token_hex(8)}"
        client.subscribe_topic(self._topic, self._hear)

    def now(self) -> float:
        return time.monotonic()

    def tell(self, event: Event) -> None:
        """Add an event to those that `wait` returns. May be called in any thread."""
        self._events.put(event)

    def start(self, task: str, worker: str, request: str) -> None:
        future = self._client.submit(
            carry_on_dask,
            task,
            request,
            self._topic,
            key=f"{self._topic}-{task}-{secrets.token_hex(4)}",
            workers=[worker],
            allow_other_workers=False,
            resources={RESOURCE: 1},
            retries=0,
            pure=False,
        )
        self._futures[task] = future
        future.add_done_callback(lambda done: self._end(task, done))

    def _end(self, task: str, future: Any) -> None:
        """Runs in a thread of dask's."""
        failure = ""
        if future.status != "finished":
            try:
                error = future.exception(timeout=1) if future.status == "error" else future.status
                failure = str(error) if isinstance(error, Failed | str) else repr(error)
            except Exception as error:  # the scheduler has just gone, or the error can't be unpickled here
                failure = f"{future.status} ({type(error).__name__})"
        self._events.put(Ended(task, failure))

    def _hear(self, event: tuple[float, dict[str, str]]) -> None:
        """Runs in a thread of dask's."""
        self._events.put(Said(event[1]["task"], event[1]["line"]))

    def wait(self, seconds: float) -> Sequence[Event]:
        self._look()
        found = []
        try:
            found.append(self._events.get(timeout=min(seconds, LOOKING_SECONDS)))
            while True:
                found.append(self._events.get_nowait())
        except queue.Empty:
            pass
        for event in found:
            if isinstance(event, Ended):
                self._futures.pop(event.task, None)  # the scheduler may forget it
        return found

    def _look(self) -> None:
        """Find out which workers have come and gone."""
        if self.now() - self._looked_at < LOOKING_SECONDS:
            return
        try:
            if self._client.status != "running":
                raise CommClosedError(f"the client is {self._client.status}")
            info = self._client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, TimeoutError) as error:
            raise FleetLost(
                f"the scheduler is gone ({error})\n  All records so far are kept. Start it again, then resume the run."
            ) from error
        self._looked_at = self.now()
        there = {worker for worker, facts in info.items() if facts.get("resources", {}).get(RESOURCE, 0) >= 1}
        for worker in there - self._workers:
            self._events.put(Joined(worker))
        for worker in self._workers - there:
            self._events.put(Left(worker))
        self._workers = there
