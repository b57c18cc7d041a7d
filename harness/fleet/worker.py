"""A host of a fleet: `python -m harness.fleet.worker [ADDRESS]` joins a scheduler and offers one slot.

Use it in place of `dask worker`: it has one thread, no nanny, no dashboard, and the settings of `quiet`. Without an
address it reads one line of JSON from its input (address, slot, TLS files' contents) and ends when the input ends, so
that a fleet started by zoomgrad ends with it, and no secret is on a command line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import threading
from typing import Any

from distributed import Security, Worker
from distributed.comm import get_address_host

from harness.fleet.host import SLOT
from harness.fleet.quiet import HEARTBEAT_SECONDS, RESOURCE, be_quiet
from harness.fleet.where import BadPlace, is_loopback, parse, secret_file
from harness.interrupts import raise_on_interrupts


class QuietWorker(Worker):  # type: ignore[misc]  # mypy knows nothing of dask
    """A worker with the heartbeat of a host that measures; the scheduler would ask for two a second."""

    async def heartbeat(self) -> None:
        await super().heartbeat()
        self.periodic_callbacks["heartbeat"].callback_time = 1000.0 * HEARTBEAT_SECONDS


async def offer(address: str, name: str, security: Security | None, patience_seconds: float) -> None:
    """Join the scheduler, and stay until it ends or sends this worker away."""
    # By default a worker listens on all interfaces, and whoever reaches one without TLS runs code here.
    host = get_address_host(address)
    own = host if is_loopback(host) else None
    with tempfile.TemporaryDirectory(prefix="zoomgrad-worker-", ignore_cleanup_errors=True) as folder:
        worker = await QuietWorker(
            address,
            host=own,
            nthreads=1,
            name=name or None,
            resources={RESOURCE: 1},
            security=security,
            heartbeat_interval=f"{HEARTBEAT_SECONDS:g}s",
            memory_limit=0,
            death_timeout=patience_seconds,
            local_directory=folder,
            dashboard=False,
            dashboard_address=f"{own or ''}:0",
        )
        await worker.finished()


def _end_with_the_input() -> None:
    while sys.stdin.readline():
        pass
    os._exit(0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m harness.fleet.worker", description="Offer this machine to a fleet."
    )
    parser.add_argument("address", nargs="?", default="", help="the scheduler's, such as tls://scheduler:8786")
    parser.add_argument("--insecure", action="store_true", help="allow plain TCP on a network that you trust")
    parser.add_argument("--name", default="", help="a name of the worker in the scheduler's logs")
    parser.add_argument("--slot", default="", help="name of one of several workers on this machine, for tests")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds to wait for the scheduler")
    # What dask-jobqueue puts on the command line; the first two are what a worker here has anyway.
    for ignored in ("--nthreads", "--memory-limit", "--local-directory", "--protocol"):
        parser.add_argument(ignored, help=argparse.SUPPRESS)
    parser.add_argument("--death-timeout", dest="patience", type=float, help=argparse.SUPPRESS)
    for part in ("ca-file", "cert", "key"):
        parser.add_argument(f"--tls-{part}", default="", help=argparse.SUPPRESS)
    return parser


def main(arguments: list[str] | None = None) -> None:
    """Entry point."""
    asked = _parser().parse_args(arguments)
    raise_on_interrupts()
    be_quiet()
    address, slot = asked.address, asked.slot
    if address:
        try:
            tls = _tls_files(asked)
        except BadPlace as bad:
            sys.exit(str(bad))
    else:
        told = json.loads(sys.stdin.readline())
        address, slot, tls = told["address"], told["slot"], told["tls"]
        threading.Thread(target=_end_with_the_input, daemon=True).start()
    if slot:
        os.environ[SLOT] = slot
    security = Security(require_encryption=True, **tls) if tls else None
    try:
        asyncio.run(offer(address, asked.name, security, asked.patience))
    except (OSError, TimeoutError) as error:
        sys.exit(f"no scheduler at {address}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _tls_files(asked: Any) -> dict[str, str]:
    """Paths for `Security`; none for plain TCP. Raises BadPlace."""
    if asked.tls_ca_file:
        return {"tls_ca_file": asked.tls_ca_file, "tls_worker_cert": asked.tls_cert, "tls_worker_key": asked.tls_key}
    if parse(asked.address, insecure=asked.insecure).kind == "tls":
        file = str(secret_file())
        return {"tls_ca_file": file, "tls_worker_cert": file, "tls_worker_key": file}
    return {}


if __name__ == "__main__":
    main()
