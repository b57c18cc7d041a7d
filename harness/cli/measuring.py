"""Preconditions of measuring: a plan, data, environments, and the machine's lock."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import typer

from zoomgrad import engines
from zoomgrad.engines.discovery import ENGINE_FILES, WORKLOAD_FILES, files
from zoomgrad.harness import workloads
from zoomgrad.harness.cli import display
from zoomgrad.harness.cli.app import FAILED, INTERRUPTED, WRONG_USE
from zoomgrad.harness.cli.console import complain, out, say, say_next
from zoomgrad.harness.cli.preparing import fetch_data
from zoomgrad.harness.cli.progress import RunProgress
from zoomgrad.harness.fleet.where import Where
from zoomgrad.harness.machine import environments, interpreters
from zoomgrad.harness.machine.environments import WORKER, NoEnvironment
from zoomgrad.harness.plan import planning
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.harness.plan.presets import Selection
from zoomgrad.harness.run.isolate import isolate
from zoomgrad.harness.run.lock import Busy, locked
from zoomgrad.harness.run.schedule import Schedule, lock_of
from zoomgrad.results.store import Store


def new_plan(preset: str, chosen: Selection, **more: Any) -> Plan:
    """Plan a run of the preset's cells that the user chose, on the interpreters of this machine. Fetches nothing.

    more: as for `planning.plan`.
    """
    installed, names = interpreters.asked(chosen.interpreters, interpreters.discover())
    selection = replace(chosen, interpreters=names)
    return planning.plan(preset, installed, selection, command=["zoomgrad", *sys.argv[1:]], **more)


def show_plan(plan: Plan, note: str) -> None:
    """Print what will be measured and how long that takes."""
    out.print(display.plan_table(plan))
    out.print(f"estimate: {display.seconds_text(plan.total_seconds)}, {note}", "")


def get_ready(plan: Plan) -> None:
    """Fetch data and make environments before measuring. Goes on after a failure, and prints a peer's."""
    fetch_data(plan.run.workloads)
    locks = {(cell.interpreter, lock) for cell in plan.run.cells for lock in (WORKER, lock_of(cell.engine))}
    for name, lock in sorted(locks):
        if name in plan.interpreters:
            try:
                with out.status(f"making the environment {lock} for {name}"):
                    environments.environment(plan.interpreters[name], lock=lock)
            except NoEnvironment as error:
                if lock != WORKER:  # the records of other cells will give the reason
                    complain(f"{lock} for {name}: {error}\n  {error.remedy}")


@contextlib.contextmanager
def measuring(plan: Plan, store: Store | None = None, then: str = "", *, wait: bool = False) -> Iterator[Schedule]:
    """Hold the machine's lock, and yield the plan's schedule, which writes to `store` or to a new one.

    On Ctrl-C, prints the commands that resume the run and then use it. then: the command that uses the finished run.
    wait: as for `alone`.
    """
    print_problems()
    resume = " && ".join(filter(None, [resuming(plan), then]))
    with alone(wait=wait):
        store = store or Store.create(plan.run)
        with resumable(resume):
            get_ready(plan)
            with RunProgress(len(plan.run.cells) * plan.run.blocks) as progress:
                schedule = Schedule(plan, store, isolate, environments.environment, progress)
                yield schedule
                schedule.clean_up()


def collected(plan: Plan, where: Where, store: Store | None, place: str) -> Store:
    """Measure the plan on a fleet, and return the run's store. On failure, prints the command that resumes the run.

    place: the arguments that name the fleet.
    """
    from zoomgrad.harness.fleet.collecting import Collector, FleetLost, connected  # late: only a fleet needs dask

    print_problems()
    store = store or Store.create(plan.run)
    resume = f"{resuming(plan)} --on {place}"
    try:
        with resumable(resume), connected(where) as client, RunProgress(0) as progress:
            Collector(plan, store, client, progress).collect()
    except FleetLost as lost:
        complain(str(lost))
        say_next(f"Resume with: {resume}")
        raise typer.Exit(FAILED) from None
    return store


@contextlib.contextmanager
def resumable(command: str) -> Iterator[None]:
    """Print the command that resumes the run after Ctrl-C or an error of the system."""
    try:
        yield
    except OSError as error:
        error.add_note(f"All records so far are kept: continue with `{command}`.")
        raise
    except KeyboardInterrupt:
        say_next(f"Interrupted. All results so far are on disk. Resume with: {command}")
        raise typer.Exit(INTERRUPTED) from None


def resuming(plan: Plan) -> str:
    """The command that resumes the run, with the same files from outside."""
    named = {"--engine-file": ENGINE_FILES, "--workload-file": WORKLOAD_FILES}
    words = [word for option, variable in named.items() for path in files(variable) for word in (option, path)]
    return shlex.join(["zoomgrad", "run", "--resume", plan.run.id, *words])


def print_problems() -> None:
    """Print one line about broken engines and workloads, which a run leaves out."""
    if problems := [*engines.problems(), *workloads.problems()]:
        complain(f"left out: {'; '.join(map(str, problems))}")


@contextlib.contextmanager
def alone(*, wait: bool) -> Iterator[None]:
    """Hold the machine's lock, so that only one run measures.

    wait: wait for the other run to end; otherwise exit with an error.
    """

    def waiting(holder: str) -> None:
        say(f"waiting for another run to end{holder and f': {holder}'}")

    try:
        with locked(waiting=waiting if wait else None):
            yield
    except Busy as busy:
        holder = f": {busy}" if str(busy) else ""
        remedy = "Wait for it with --wait. Two runs at a time would disturb each other's timings."
        complain(f"another run is measuring{holder}\n  {remedy}")
        raise typer.Exit(WRONG_USE) from None
