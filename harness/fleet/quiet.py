"""Settings of dask that leave a host alone while it measures, and the check that a worker has them.

By default a dask worker samples its threads every 10 ms, ticks every 20 ms, looks at its memory ten times a second and
reports to the scheduler twice a second. Its nanny exports variables that change malloc and the number of threads.
"""

from __future__ import annotations

from typing import Any

HEARTBEAT_SECONDS = 30.0
RESOURCE = "slot"
"""The resource of which each host has one, so that a host does one task at a time."""

SELDOM = "1h"
QUIET: dict[str, Any] = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": SELDOM,
    "distributed.admin.tick.limit": SELDOM,
    "distributed.admin.tick.cycle": SELDOM,
    "distributed.admin.system-monitor.interval": SELDOM,
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.worker.memory.monitor-interval": SELDOM,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.nanny.pre-spawn-environ": {},
    "distributed.nanny.environ": {},
    # The scheduler: it must not move work, nor repeat a task silently.
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.worker-ttl": "2 minutes",
    "distributed.admin.low-level-log-length": 100,
    "distributed.worker.http.routes": [],
    "distributed.scheduler.http.routes": [],
}

OF_A_WORKER = tuple(name for name in QUIET if name.startswith(("distributed.worker.", "distributed.admin.tick.")))
"""Settings that a worker must have, or its host is refused."""


def be_quiet() -> None:
    """Give this process the settings. Call it before a worker, a scheduler or a client is made."""
    import dask

    dask.config.set(QUIET)


def noise() -> list[str]:
    """Settings of this process that would disturb a timing, as `name = value`."""
    import dask

    found = {name: dask.config.get(name, None) for name in OF_A_WORKER}
    return [f"{name} = {value}" for name, value in found.items() if value != QUIET[name]]
