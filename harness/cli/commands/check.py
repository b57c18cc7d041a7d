"""`zoomgrad check`: compare a new or finished run with the baseline run, and fail on regressions."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Optional

import typer

from zoomgrad.harness.cli import options
from zoomgrad.harness.cli.app import WRONG_USE, app
from zoomgrad.harness.cli.console import say, say_next, short
from zoomgrad.harness.cli.measuring import measuring, show_plan
from zoomgrad.harness.cli.preparing import new_plan
from zoomgrad.harness.cli.stores import store_of
from zoomgrad.harness.cli.verdicts import conclude
from zoomgrad.harness.run.schedule import Schedule
from zoomgrad.reports.verdicts import of_runs
from zoomgrad.results import units
from zoomgrad.results.compare import Limits, Verdict
from zoomgrad.results.files import Unreadable, inside
from zoomgrad.results.run_file import SUFFIX
from zoomgrad.results.store import BASELINE_RUNS, PACKAGED_RUNS, RunFile, Store, stored


@app.command()
def check(
    context: typer.Context,
    run: Annotated[Optional[str], options.a_run("Finished run to check", "a new one; for --update, the newest")] = None,
    measure: Annotated[
        bool, typer.Option("--run", help="Measure the new run. Without it, only print what would be measured.")
    ] = False,
    against: Annotated[
        Optional[str],
        options.named(
            "--against",
            metavar="RUN",
            help="Baseline run: id, folder or file. --update writes this file. Default: the committed run.",
        ),
    ] = None,
    preset: options.Preset = None,
    engines: options.Engines = None,
    workloads: options.Workloads = None,
    interpreters: options.Interpreters = None,
    blocks: options.Blocks = None,
    timeout: options.Timeout = None,
    update: Annotated[bool, typer.Option("--update", help="Make a finished run the baseline run.")] = False,
    wait: options.Wait = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Fail if a speedup regressed against the baseline run, a result is wrong or missing, or compiling takes longer."""
    finished = store_of(run) if run or update else None
    if finished:
        useless = "preset", "engines", "workloads", "interpreters", "blocks", "timeout"
        options.refuse_useless(context, finished.run.id, *useless, *(["measure"] if update else ()))
    preset = finished.run.preset if finished else preset or "smoke"
    if finished and update:
        _keep(finished, against)
        return
    baseline_run = _baseline_run(against, preset)
    from zoomgrad.reports import gate

    suite_file, suite = context.obj or (None, None)
    limits = suite.gate if suite else Limits()

    def judge(store: Store) -> list[Verdict]:
        return gate.verdicts(store, baseline_run, limits)

    words = {"--suite": suite_file and short(suite_file), "--against": against}
    more = "".join(f" {option} {shlex.quote(value)}" for option, value in words.items() if value)
    store, notes = finished, list[str]()
    if store is None:
        chosen = options.selection(engines, workloads, interpreters)
        plan = new_plan(preset, chosen, fetches=measure, blocks=blocks, **options.limits(timeout))
        gate.refuse_incomparable(plan.run, baseline_run.run)
        show_plan(plan, "plus remeasuring suspected regressions")
        if not measure:  # the exit code of wrong use, so that no script takes it for a passed check
            say_next(f"Nothing was measured. To measure this run and compare it with {baseline_run.run.id}, add --run.")
            raise typer.Exit(WRONG_USE)
        with measuring(plan, then=f"zoomgrad check {plan.run.id}{more}", wait=wait) as schedule:
            schedule.execute()
            notes += settle(schedule, judge, limits)
        store = schedule.store
    sides = "baseline run", "now"
    table = of_runs(f"Gate: {store.run.id}", sides, store.run, baseline_run.run, judge(store), notes)
    name = short(store.path) if isinstance(store, RunFile) else store.run.id
    remedy = f"If the change is intended: zoomgrad check {name} --update{more}"
    conclude(table, store.file("check.md"), as_json=as_json, remedy=remedy)


def settle(schedule: Schedule, judge: Callable[[Store], list[Verdict]], limits: Limits) -> list[str]:
    """Double the blocks of suspects until none is left, or the limit on reruns is reached.

    judge: compares a run with the baseline run. Returns a sentence about what was measured again; none if nothing was.
    """
    from zoomgrad.reports import gate

    added = 0
    for turn in range(limits.reruns):
        suspects = gate.suspects(judge(schedule.store), measured_again=turn > 0)
        before = added
        for _ in range(schedule.plan.run.blocks << turn if suspects else 0):
            added += schedule.add_block(suspects)
        if added == before:
            break
    return [f"Suspected regressions were measured again in {units.count(added, 'more block')}."] if added else []


def _keep(store: Store, against: Optional[str]) -> None:
    """Store the run as a baseline run. Raises Unreadable if later runs could not be compared with it."""
    if against and not against.endswith(SUFFIX):
        raise Unreadable(f"{against}: --update writes a file\n  Name one that ends with {SUFFIX}.")
    file = Path(against) if against else inside(BASELINE_RUNS, f"{store.run.preset}{SUFFIX}")
    from zoomgrad.reports import gate

    gate.refuse_as_baseline(store)
    if file.exists():
        say(f"replacing {short(file)}")
    kept = store.keep_as(file)
    say_next(f"{store.run.id} is now the baseline run. Commit {short(kept.path)}")


def _baseline_run(against: Optional[str], preset: str) -> Store:
    """Find the run to compare with. Raises UnknownName, and Unreadable if there is no such baseline run."""
    if against and not against.endswith(SUFFIX):
        return store_of(against)
    folders = (BASELINE_RUNS, *(() if "ZOOMGRAD_BASELINE_RUNS" in os.environ else (PACKAGED_RUNS,)))
    files = [Path(against)] if against else [inside(folder, f"{preset}{SUFFIX}") for folder in folders]
    if baseline := next(filter(None, map(stored, files)), None):
        return baseline
    raise Unreadable(
        f"{short(files[0])}: no baseline run for preset {preset}\n"
        f"  Make one: `zoomgrad run --preset {preset}`, then `zoomgrad check --update`. Or name a run with --against."
    )
