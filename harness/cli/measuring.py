"""Preconditions of measuring: a plan, data, environments, and the machine's lock."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator

import typer

from zoomgrad import engines
from zoomgrad.engines.discovery import ENGINE_FILES, WORKLOAD_FILES, files
from zoomgrad.harness import workloads
from zoomgrad.harness.cli import display
from zoomgrad.harness.cli.app import INTERRUPTED
from zoomgrad.harness.cli.console import complain, out, say, say_next
from zoomgrad.harness.cli.preparing import fetch_data
from zoomgrad.harness.cli.progress import RunProgress
from zoomgrad.harness.machine import environments
from zoomgrad.harness.machine.environments import WORKER, NoEnvironment
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.harness.run.isolate import isolate
from zoomgrad.harness.run.lock import Busy, locked
from zoomgrad.harness.run.schedule import Schedule, lock_of
from zoomgrad.results.files import Unreadable
from zoomgrad.results.store import Store


def show_plan(plan: Plan, note: str) -> None:
    """Print what will be measured and how long that takes."""
    out.print(display.plan_table(plan))
    out.print(f"estimate: {display.seconds_text(plan.total_seconds)}, {note}", "")


def get_ready(plan: Plan) -> None:
    """Fetch data and make environments before measuring. Records give the reason of a failure."""
    fetch_data(plan.run.workloads)
    locks = {(cell.interpreter, lock) for cell in plan.run.cells for lock in (WORKER, lock_of(cell.engine))}
    for name, lock in sorted(locks):
        if name in plan.interpreters:
            with out.status(f"making the environment {lock} for {name}"), contextlib.suppress(NoEnvironment):
                environments.environment(plan.interpreters[name], lock=lock)


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
            with RunProgress() as progress:
                schedule = Schedule(plan, store, isolate, environments.environment, progress)
                yield schedule
                schedule.clean_up()


def collected(plan: Plan, address: str, store: Store | None) -> Store:
    """Measure the plan on the fleet whose scheduler has that address, and return the run's store."""
    from zoomgrad.harness.fleet.collecting import Collector, connected  # late: only a fleet needs dask

    print_problems()
    store = store or Store.create(plan.run)
    resume = f"{resuming(plan)} --on {shlex.quote(address)}"
    with resumable(resume), connected(address) as client, RunProgress() as progress:
        Collector(plan, store, client, progress).collect()
    return store


@contextlib.contextmanager
def resumable(command: str) -> Iterator[None]:
    """Name the command that resumes the run after Ctrl-C or an error of the system or a fleet."""
    try:
        yield
    except (OSError, Unreadable) as error:
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
    """Hold the machine's lock, so that only one run measures. wait: wait for another run, instead of raising Busy."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(wait=False))
        except Busy:
            if not wait:
                raise
            say("waiting for another run to end")
            stack.enter_context(locked(wait=True))
        yield
