"""`zoomgrad profile`: run profilers on cells and add their profiles to a run's report."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from zoomgrad.engines.api import UnknownName
from zoomgrad.harness.cli import display, options
from zoomgrad.harness.cli.app import FAILED, INTERRUPTED, app
from zoomgrad.harness.cli.console import out, say, say_next, short
from zoomgrad.harness.cli.measuring import alone, get_ready
from zoomgrad.harness.cli.preparing import new_plan
from zoomgrad.harness.cli.stores import folder_of
from zoomgrad.harness.profile import PROFILERS, planned, profiled
from zoomgrad.results import units
from zoomgrad.results.store import Store, latest

LOOK_SECONDS = 6.0
"""Estimated time of a profile besides its session: start, preparation, and reading the profiler's files."""


@app.command()
def profile(
    engines: options.Engines = None,
    workloads: options.Workloads = None,
    interpreters: options.Interpreters = None,
    profilers: Annotated[
        Optional[list[str]], options.listed("--profilers", help=f"Only these of {', '.join(PROFILERS)}. Default: all.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.5, help="Duration of each profile. The anatomy takes longer if steps are slow.")
    ] = 6.0,
    timeout: options.Timeout = None,
    memory: options.Memory = None,
    join: Annotated[
        Optional[str],
        options.named("--run", metavar="RUN", help="Run whose report shows them: id or folder. Default: the newest."),
    ] = None,
    wait: options.Wait = False,
    quiet: options.Quiet = False,
) -> None:
    """Show where time and memory go: by stage of a step, by line (Scalene), by function (perf).

    Never runs at the same time as a timed run.
    `zoomgrad export --format speedscope` writes the stacks for speedscope.app.
    """
    chosen = profilers or list(PROFILERS)
    for name in chosen:
        if name not in PROFILERS:
            raise UnknownName("profiler", name, PROFILERS)
    joined = folder_of(join) if join else None
    selected = options.selection(engines, workloads, interpreters)
    limits = options.limits(timeout, memory)
    plan = new_plan("profile", selected, blocks=0, **limits)
    todo = planned(plan, chosen)
    estimate = display.seconds_text(len(todo) * (seconds + LOOK_SECONDS))
    out.print(
        f"{units.count(len(todo), 'profile')} of {units.count(len(plan.run.cells), 'cell')}, about {estimate}", ""
    )
    # Imported late: pandas takes a second, which would delay `--help` and the error about a wrong name.
    from zoomgrad.reports import build

    with alone(wait=wait):
        store = joined or latest() or Store.create(plan.run)
        get_ready(plan)
        store.learn(plan.run)
        failed = False
        try:
            with out.status("starting") as status:
                for number, (cell, name) in enumerate(todo, 1):
                    status.update(f"{name} on {cell.key}")
                    seen = profiled(plan, store, cell, name, seconds)
                    what = seen.reason.splitlines()[0] if seen.reason else units.count(seen.steps, "step")
                    say(f"[{number}/{len(todo)}] {name} on {cell.key}: {seen.status}, {what}")
                    failed = failed or seen.status in ("failed", "timed-out")
        except KeyboardInterrupt:
            say_next("Interrupted. Finished profiles are on disk, but running the command again repeats all of them.")
            raise typer.Exit(INTERRUPTED) from None
    page = build.build(store)
    say_next(f"Open {short(page)}#profiles")
    if failed:
        raise typer.Exit(FAILED)
