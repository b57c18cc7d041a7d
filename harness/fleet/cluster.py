"""What collecting needs of a cluster: start a task on a worker, and wait for events.

`dask_cluster.DaskCluster` is the real one. Tests and the simulation have a fake one, with a clock of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class FleetLost(Exception):
    """Nobody is left to measure. The text has the reason and, on a second line, the remedy."""


@dataclass(frozen=True)
class Joined:
    """A worker is there. Its host is not known yet."""

    worker: str


@dataclass(frozen=True)
class NotStarted:
    """A worker that we started has ended, or could not be started. reason: what it said, and what to do."""

    worker: str
    reason: str


@dataclass(frozen=True)
class Left:
    """A worker is gone."""

    worker: str


@dataclass(frozen=True)
class Said:
    """A task's host process printed a line."""

    task: str
    line: str


@dataclass(frozen=True)
class Ended:
    """A task has ended; failure: why it did not do what was asked, or nothing."""

    task: str
    failure: str = ""


Event = Joined | NotStarted | Left | Said | Ended


class Cluster(Protocol):
    """Workers, of which each does one task at a time."""

    def now(self) -> float:
        """Seconds of a clock that never goes back."""

    def start(self, task: str, worker: str, request: str) -> None:
        """Send a request to that worker's host. Events report what follows, even if the worker has just left."""

    def wait(self, seconds: float) -> Sequence[Event]:
        """Return the events since the last call, after waiting for the first of them. Raises FleetLost."""
