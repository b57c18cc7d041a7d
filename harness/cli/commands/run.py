"""`zoomgrad run`: plan, measure and report a new run, or resume an interrupted one."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from zoomgrad.harness.cli import options
from zoomgrad.harness.cli.app import FAILED, app
from zoomgrad.harness.cli.measuring import collected, measuring, show_plan
from zoomgrad.harness.cli.preparing import new_plan
from zoomgrad.harness.cli.stores import folder_of
from zoomgrad.harness.fleet.where import checked
from zoomgrad.harness.machine import interpreters as machine
from zoomgrad.harness.machine.interpreters import asked
from zoomgrad.harness.plan import planning
from zoomgrad.results.files import Unreadable


@app.command()
def run(
    preset: options.Preset = "quick",
    engines: options.Engines = None,
    workloads: options.Workloads = None,
    interpreters: options.Interpreters = None,
    blocks: options.Blocks = None,
    timeout: options.Timeout = None,
    memory: options.Memory = None,
    resume: Annotated[
        Optional[str], options.named("--resume", metavar="RUN", help="Interrupted run to continue: id or folder.")
    ] = None,
    on: Annotated[
        Optional[str],
        options.named(
            "--on", metavar="ADDRESS", help="Measure on the workers of a dask scheduler, such as tls://scheduler:8786."
        ),
    ] = None,
    wait: options.Wait = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure cells in fresh processes, then print the results and build the report."""
    address = checked(on) if on else ""
    chosen = options.selection(engines, workloads, interpreters)
    resumed = folder_of(resume) if resume else None
    if resumed:
        # The record has no path of a build that was named by its path, because paths are private.
        plan = planning.resume(resumed.run, asked(chosen.interpreters, machine.discover())[0])
    else:
        limits = options.limits(timeout, memory)
        fleet = address.partition("://")[0]
        plan = new_plan(preset or "quick", chosen, blocks=blocks, fleet=fleet, **limits)
    if bool(plan.run.fleet) != bool(address):
        what = "was measured on a fleet" if plan.run.fleet else "was measured on one machine, without --on"
        raise Unreadable(f"{plan.run.id}: {what}\n  Resume it {'with' if plan.run.fleet else 'without'} --on.")
    show_plan(plan, "plus setting up environments")
    if address:
        store = collected(plan, address, resumed)
    else:
        with measuring(plan, resumed, wait=wait) as schedule:
            schedule.execute()
        store = schedule.store
    # Imported late: pandas takes a second, which would delay `--help` and the error about a wrong name.
    from zoomgrad.harness.cli.commands.report import conclude

    conclude(store)
    if any(record.status in ("failed", "timed-out") for record in store.records()):
        raise typer.Exit(FAILED)
