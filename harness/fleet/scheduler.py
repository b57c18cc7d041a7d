"""The scheduler of a fleet: `python -m harness.fleet.scheduler tls://0.0.0.0:8786` runs until it is ended.

Use it in place of `dask scheduler`: no work stealing, no silent retries, no dashboard. `--make-secret FILE` writes a
new key and certificate instead: whoever has that file may join the fleet and run code on all of its hosts.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

from distributed import Scheduler, Security

from harness.fleet.quiet import be_quiet
from harness.fleet.where import SECRET, BadPlace, parse, secret_file
from harness.interrupts import raise_on_interrupts


def security(address: str) -> Security | None:
    """TLS with the shared secret for a tls:// address. Raises BadPlace without a secret."""
    if not address.startswith("tls://"):
        return None
    file = str(secret_file())
    roles = {f"tls_{role}_{part}": file for role in ("scheduler", "worker", "client") for part in ("cert", "key")}
    return Security(require_encryption=True, tls_ca_file=file, **roles)


def make_secret(file: Path) -> None:
    """Write a new key with its certificate, readable by the user only. Raises FileExistsError."""
    made = Security.temporary()
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as output:
        output.write(made.tls_client_key + made.tls_ca_file)


async def serve(address: str) -> None:
    """Serve until ended."""
    async with Scheduler(host=address, security=security(address), dashboard=False) as scheduler:
        print(f"scheduler at {scheduler.address}", flush=True)  # noqa: T201  (a command's output)
        await scheduler.finished()


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m harness.fleet.scheduler", description="Serve a fleet.")
    parser.add_argument("address", nargs="?", default="tls://0.0.0.0:8786", help="to listen at")
    parser.add_argument("--insecure", action="store_true", help="allow plain TCP on a network that you trust")
    parser.add_argument("--make-secret", type=Path, metavar="FILE", help="write a new shared secret, and end")
    asked = parser.parse_args()
    raise_on_interrupts()
    be_quiet()
    try:
        if asked.make_secret:
            make_secret(asked.make_secret)
            print(f"Copy {asked.make_secret} to every host, and set {SECRET} to its path there.")  # noqa: T201
            return
        parse(asked.address, insecure=asked.insecure)
        asyncio.run(serve(asked.address))
    except (BadPlace, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
