"""A run on a fleet: its progress by host, and the preconditions of `--on`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib.util import find_spec

import typer
from filelock import FileLock, Timeout

from zoomgrad.harness.cli.app import FAILED, WRONG_USE
from zoomgrad.harness.cli.console import complain, say, say_next
from zoomgrad.harness.cli.measuring import alone, resumable, resuming, tell_left_out
from zoomgrad.harness.cli.progress import RunProgress
from zoomgrad.harness.fleet.home import Home
from zoomgrad.harness.fleet.where import BadPlace, Where, parse
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.results.files import inside
from zoomgrad.results.record import HostFacts
from zoomgrad.results.store import Store


def place(text: str, *, insecure: bool) -> Where:
    """The place after `--on`. Exits with an error if it can't be used."""
    try:
        where = parse(text, insecure=insecure)
    except BadPlace as bad:
        complain(str(bad))
        raise typer.Exit(WRONG_USE) from None
    if not find_spec("distributed"):
        complain("--on needs dask[distributed]\n  Install the extra: pip install 'zoomgrad[fleet]'")
        raise typer.Exit(WRONG_USE)
    return where


class FleetProgress(RunProgress):
    """Progress of a fleet: each line names the host."""

    def admitted(self, host: str, facts: HostFacts) -> None:
        machine = facts.machine
        about = (machine.get(name, "") for name in ("processor", "cores", "frequency governor", "load at start"))
        say(f"{host} joined: {'; '.join(filter(None, about))}")


@contextlib.contextmanager
def _only_client(store: Store) -> Iterator[None]:
    """Hold the run's lock: two clients would measure each block twice. Exits with an error if another holds it."""
    try:
        with FileLock(inside(store.folder, "client.lock"), timeout=0):
            yield
    except Timeout:
        complain(f"{store.folder.name}: another client collects its records\n  Wait until that one has ended.")
        raise typer.Exit(WRONG_USE) from None


@contextlib.contextmanager
def collecting(plan: Plan, where: Where, store: Store | None, text: str, *, wait: bool) -> Iterator[Store]:
    """Measure the plan on a fleet, then yield the run's store. On failure, prints the command that resumes the run."""
    from zoomgrad.harness.fleet.collecting import (  # imported late: only a fleet needs dask
        Collector,
        FleetLost,
        connected,
    )

    tell_left_out()
    is_local = where.kind == "local"
    # Hosts lock their own machines. Workers that share this one rely on us.
    with alone(wait=wait) if is_local else contextlib.nullcontext():
        store = store or Store.create(plan.run)
        resume = f"{resuming(plan)} --on {text}"
        try:
            with resumable(resume), _only_client(store), connected(where) as client, FleetProgress(0) as progress:
                Collector(plan, Home(store), client, progress, shares_machine=is_local).collect()
        except FleetLost as lost:
            complain(str(lost))
            say_next(f"Resume with: {resume}")
            raise typer.Exit(FAILED) from None
    yield store
