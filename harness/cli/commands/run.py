"""`zoomgrad run`: plan, measure and report a new run, or resume an interrupted one."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from zoomgrad.harness.cli import display, fetching
from zoomgrad.harness.cli.app import FAILED, app, out
from zoomgrad.harness.cli.measuring import measuring, requested
from zoomgrad.harness.cli.options import (
    Engines,
    Interpreters,
    Memory,
    Timeout,
    Wait,
    Workloads,
    duration,
    limits,
    names,
    share,
    some_name,
)
from zoomgrad.harness.cli.stores import folder_of
from zoomgrad.harness.machine import interpreters, named
from zoomgrad.harness.plan import planning, presets
from zoomgrad.results.files import Unreadable
from zoomgrad.results.store import Store

if TYPE_CHECKING:
    from zoomgrad.harness.fleet.where import Where


@app.command()
def run(
    preset: Annotated[
        str, typer.Option(callback=some_name, help=f"Preset to measure: {', '.join(presets.PRESETS)}.")
    ] = "quick",
    engines_: Engines = None,
    workloads_: Workloads = None,
    interpreters_: Interpreters = None,
    blocks: Annotated[
        Optional[int], typer.Option(min=1, help="Processes per cell. An interval needs at least three.")
    ] = None,
    seed: Annotated[
        Optional[int], typer.Option(help="Seed of the shuffled order. Default: random. It is recorded either way.")
    ] = None,
    timeout: Timeout = None,
    memory: Memory = None,
    until: Annotated[
        Optional[float],
        typer.Option(
            parser=share, metavar="SHARE", help="Add blocks until every speedup is known to within this share, e.g. 5%."
        ),
    ] = None,
    budget: Annotated[
        Optional[float],
        typer.Option(
            parser=duration, metavar="TIME", help="Let --until add no block that would end after this time, e.g. 10m."
        ),
    ] = None,
    resume: Annotated[
        Optional[str], typer.Option(callback=some_name, help="Interrupted run to continue: its id or folder.")
    ] = None,
    peers: Annotated[
        bool,
        typer.Option(
            "--peers",
            help="Make the environments of PyTorch and JAX, which is a large download, if the run has such cells. "
            "Implied by the presets peers and widths.",
        ),
    ] = False,
    on: Annotated[
        Optional[str],
        typer.Option(
            callback=some_name,
            metavar="PLACE",
            help="Measure on the workers of a dask scheduler: local:2, or tls://scheduler:8786.",
        ),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let --on use plain TCP beyond this machine, on a network you trust.")
    ] = False,
    fetch: Annotated[
        Optional[bool],
        typer.Option(
            "--fetch/--no-fetch",
            help="Let uv install the interpreters of the run that this machine lacks. Default: only if CI is set.",
        ),
    ] = None,
    wait: Wait = False,
) -> None:
    """Measure cells in fresh processes, then print the results and build the report."""
    if budget and not until:
        raise typer.BadParameter("--budget limits the blocks that --until adds: add --until")
    where = _where(on, insecure=insecure, peers=peers, until=until) if on else None
    if resume:
        # Where a build given by path lies is not in the record, because a path is private.
        there, _ = named.asked(names(interpreters_), interpreters.discover())
        plan = planning.resume(folder_of(resume).run, there)
    else:

        def planned() -> planning.Plan:
            found, only_interpreters = requested(names(interpreters_))
            return planning.plan(
                preset,
                found,
                command=["zoomgrad", *sys.argv[1:]],
                only_engines=names(engines_),
                only_workloads=names(workloads_),
                only_interpreters=only_interpreters,
                blocks=blocks,
                seed=seed,
                **limits(timeout, memory),
                precision=until or 0.0,
                budget_seconds=budget or 0.0,
                fleet=where.recorded if where else "",
            )

        plan = planned()
        missing = fetching.lacking(plan) if (bool(os.environ.get("CI")) if fetch is None else fetch) else []
        if missing and fetching.pythons(missing):
            plan = planned()
        plan = fetching.with_clang(plan)
    if bool(plan.run.fleet) != bool(where):
        what = "was measured on a fleet" if plan.run.fleet else "was measured on one machine, without --on"
        raise Unreadable(f"{plan.run.id}: {what}\n  Resume it {'with' if plan.run.fleet else 'without'} --on.")
    chosen = presets.PRESETS.get(plan.run.preset)  # an old run may be of a preset that no longer exists
    with_peers = peers or (chosen is not None and chosen.peers)
    out.print(display.plan_table(plan))
    out.print(f"estimate: {display.seconds_text(plan.total_seconds)}, not counting new environments", "")
    if where:
        from zoomgrad.harness.cli.fleet import collecting

        place = shlex.quote(str(on)) + " --insecure" * insecure
        with collecting(plan, where, folder_of(resume) if resume else None, place, wait=wait) as store:
            _end(store)
        return
    with measuring(plan, folder_of(resume) if resume else None, wait=wait, with_peers=with_peers) as schedule:
        schedule.execute()
    _end(schedule.store)


def _end(store: Store) -> None:
    # Imported late: pandas and matplotlib take a second, which would delay `--help` and the error about a wrong name.
    from zoomgrad.harness.cli.commands.report import conclude

    conclude(store)
    if any(record.status in ("failed", "timed-out") for record in store.records()):
        raise typer.Exit(FAILED)


def _where(on: str, *, insecure: bool, peers: bool, until: float | None) -> Where:
    """The fleet's place. Exits with an error if it can't be used, or not with the other options."""
    from zoomgrad.harness.cli.fleet import place

    if peers or until:
        raise typer.BadParameter(f"a fleet does not support {'--peers' if peers else '--until'} yet: leave it out")
    return place(on, insecure=insecure)
