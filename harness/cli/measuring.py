"""What a run needs before it may measure: interpreters, environments, and nobody else measuring."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Collection, Iterator

import typer

import engines
from harness import containment
from harness.cli import display
from harness.cli.app import INTERRUPTED, WRONG_USE, complain, out, say_next
from harness.cli.preparing import fetch_data
from harness.machine import environments, interpreters
from harness.machine.environments import NoEnvironment
from harness.plan.planning import Plan
from harness.run.isolate import RUN, isolate
from harness.run.lock import Busy, locked
from harness.run.schedule import Schedule
from results.store import Store


def discover(only: Collection[str] = ()) -> list[interpreters.Interpreter]:
    """The interpreters of this machine; where none is a PyPy and one is wanted, uv may bring one.

    only: the interpreters that were asked for; empty: all.
    """
    found = interpreters.discover()
    with_pypy = not only or any("pypy" in name for name in only)
    if with_pypy and not any(interpreter.has_jit for interpreter in found):
        with out.status("no PyPy here: asking uv for one"):
            if environments.fetch_pypy():
                found = interpreters.discover()
    return found


def get_ready(plan: Plan) -> None:
    """Data and environments, before the clock matters; what can't be had becomes a record later, with the reason."""
    fetch_data(plan.run.workloads)
    for name in dict.fromkeys(cell.interpreter for cell in plan.run.cells):
        if name in plan.interpreters:
            with out.status(f"environment for {name}"), contextlib.suppress(NoEnvironment):
                environments.environment(plan.interpreters[name])


@contextlib.contextmanager
def measuring(plan: Plan, store: Store | None = None, then: str = "", *, wait: bool = False) -> Iterator[Schedule]:
    """A schedule of that plan with nobody beside it, into that store or a new one. Ctrl-C says how to go on.

    then: the command that takes up what is to be done with the whole run. wait: for another run's end.
    """
    tell_left_out()
    with alone(wait=wait):
        store = store or Store.create(plan.run)
        try:
            os.environ[RUN] = plan.run.id
            get_ready(plan)
            with display.RunProgress(out, len(plan.run.cells) * plan.run.blocks) as progress:
                schedule = Schedule(plan, store, isolate, environments.environment, progress)
                yield schedule
                schedule.clean_up()
        except KeyboardInterrupt:
            resume = " && ".join(filter(None, [f"zoomgrad run --resume {plan.run.id}", then]))
            say_next(f"Interrupted; what was measured is on disk. Resume with: {resume}")
            raise typer.Exit(INTERRUPTED) from None


def tell_left_out() -> None:
    """One line for all engines that are broken: a run goes on without them."""
    if engines.problems():
        complain(f"left out: {'; '.join(map(str, engines.problems()))}")


@contextlib.contextmanager
def alone(*, wait: bool) -> Iterator[None]:
    """Keep a second run of this machine from measuring at the same time, and end what one that died left behind.

    wait: for the other run's end; else it ends this command.
    """

    def waiting(holder: str) -> None:
        say_next(f"waiting for the end of another run{holder and f': {holder}'}")

    try:
        with locked(["zoomgrad", *sys.argv[1:]], waiting=waiting if wait else None):
            left = containment.end_leftovers()
            if left:
                out.print(f"ended {left} {'process' if left == 1 else 'processes'} of a run that was killed")
            yield
    except Busy as busy:
        holder = f": {busy}" if str(busy) else ""
        remedy = "Wait for its end with --wait: two at a time would time each other's load."
        complain(f"another run is measuring{holder}\n  {remedy}")
        raise typer.Exit(WRONG_USE) from None
