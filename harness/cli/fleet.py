"""A run on a fleet: its progress by host, and the preconditions of `--on`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib.util import find_spec

import typer
from filelock import FileLock, Timeout

from harness.cli.app import FAILED, INTERRUPTED, WRONG_USE, complain, out, say_next
from harness.cli.display import RunProgress
from harness.cli.measuring import alone, tell_left_out
from harness.fleet.cluster import FleetLost
from harness.fleet.where import BadPlace, Where, parse
from harness.plan.planning import Plan
from results.files import inside
from results.fleet.home import Home
from results.record import HostFacts
from results.store import Store

PACKAGES = {"distributed": "dask[distributed]", "dask_jobqueue": "dask-jobqueue", "asyncssh": "asyncssh"}


def place(text: str, *, insecure: bool) -> Where:
    """The place after `--on`. Exits with an error if it can't be used."""
    missing = [package for module, package in PACKAGES.items() if not find_spec(module)]
    try:
        where = parse(text, insecure=insecure)
    except BadPlace as bad:
        complain(str(bad))
        raise typer.Exit(WRONG_USE) from None
    if missing:
        complain(f"--on needs {', '.join(missing)}\n  Install the extra: pip install -e '.[harness,fleet]'")
        raise typer.Exit(WRONG_USE)
    return where


class FleetProgress(RunProgress):
    """Progress of a fleet: each line names the host."""

    def admitted(self, host: str, facts: HostFacts) -> None:
        machine = facts.machine
        about = "; ".join(
            filter(None, (machine.get(name, "") for name in ("processor", "cores", "frequency governor")))
        )
        self._say(f"{host} joined: {about}")
        load = machine.get("load at start", "")
        with contextlib.suppress(ValueError):  # a host may send any text
            if load and float(load.split(",")[0]) > 1.0:
                self._say(f"{host}: its load is {load}; other programs disturb its timings")

    def refused(self, worker: str, reason: str) -> None:
        self._say(f"refused {worker}: {reason}")

    def lost(self, host: str, block: int, reason: str) -> None:
        self._say(f"{host}: lost while it measured block {block + 1}: {reason}")

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def _only_client(store: Store) -> Iterator[None]:
    """Hold the run's lock: two clients would give one block to two hosts. Exits with an error if another holds it."""
    lock = FileLock(inside(store.folder, "client.lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        complain(f"{store.folder.name}: another client collects its records\n  Wait until that one has ended.")
        raise typer.Exit(WRONG_USE) from None
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def collecting(plan: Plan, where: Where, store: Store | None, text: str, *, wait: bool) -> Iterator[Store]:
    """Measure the plan on a fleet, then yield the run's store. On failure, prints the command that resumes the run."""
    # Imported late: only a fleet needs dask.
    from harness.fleet import starting
    from harness.fleet.collecting import Collector
    from harness.fleet.fingerprint import fingerprint

    tell_left_out()
    # Hosts lock their own machines. Workers that share this one rely on us.
    with alone(wait=wait) if where.kind == "local" else contextlib.nullcontext():
        store = store or Store.create(plan.run)
        resume = f"zoomgrad run --resume {plan.run.id} --on {text}"
        try:
            with _only_client(store), starting.started(where) as cluster, FleetProgress(out, 0) as progress:
                patience = starting.PATIENCE_SECONDS[where.kind]
                Collector(plan, Home(store), cluster, progress, fingerprint(plan.run), patience).collect()
        except (FleetLost, BadPlace) as lost:
            complain(str(lost))
            say_next(f"Resume with: {resume}")
            raise typer.Exit(FAILED if isinstance(lost, FleetLost) else WRONG_USE) from None
        except KeyboardInterrupt:
            say_next(f"Interrupted. All results so far are on disk. Resume with: {resume}")
            raise typer.Exit(INTERRUPTED) from None
    yield store
