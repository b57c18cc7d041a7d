"""`zoomgrad check`: compare a new or finished run with the baseline run, and fail on regressions."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from zoomgrad.harness.cli.app import WRONG_USE, app
from zoomgrad.harness.cli.console import say, say_next, short
from zoomgrad.harness.cli.measuring import measuring, new_plan, show_plan
from zoomgrad.harness.cli.options import (
    Blocks,
    Engines,
    Interpreters,
    Json,
    Preset,
    Quiet,
    Timeout,
    Wait,
    Workloads,
    a_run,
    limits,
    named,
    selection,
)
from zoomgrad.harness.cli.stores import store_of
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.harness.run.schedule import Schedule
from zoomgrad.results import units
from zoomgrad.results.compare import Verdict
from zoomgrad.results.files import Unreadable, inside
from zoomgrad.results.run_file import SUFFIX
from zoomgrad.results.store import BASELINE_RUNS, PACKAGED_RUNS, RunFile, Store, stored

if TYPE_CHECKING:  # importing pandas takes a second, which would delay the error about a missing run
    from zoomgrad.reports.gate.limits import Limits

READING = (
    "“takes” is the change of a time relative to the baseline's, new run over baseline run: median of blocks and 95 % "
    "interval. The gate never compares the seconds of two runs. “may take” is the limit. “slower” means that the whole "
    "interval is beyond it, and that equal code looks so in at most one run in a hundred; “unsure” that the change may "
    "be on either side of it."
)
Judge = Callable[[Store], list[Verdict]]
"""Compare a run with the baseline run."""


@app.command()
def check(
    context: typer.Context,
    run: Annotated[Optional[str], a_run("Finished run to check", "a new one")] = None,
    measure: Annotated[
        bool, typer.Option("--run", help="Measure the new run. Without it, only print what would be measured.")
    ] = False,
    against: Annotated[
        Optional[str],
        named(
            "--against",
            metavar="RUN",
            help="Baseline run: id, folder or file, or a folder with one run per preset. --update writes this file. "
            "Default: the committed run.",
        ),
    ] = None,
    preset: Preset = None,
    engines: Engines = None,
    workloads: Workloads = None,
    interpreters: Interpreters = None,
    blocks: Blocks = None,
    timeout: Timeout = None,
    update: Annotated[
        bool, typer.Option("--update", help="Store the run as the baseline run instead of checking it.")
    ] = False,
    wait: Wait = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Fail if a speedup regressed against the baseline run, a result is wrong or missing, or compiling takes longer."""
    chosen = selection(engines, workloads, interpreters)
    finished = store_of(run) if run else None
    others = {"--preset": preset, "--blocks": blocks, "--timeout": timeout}
    given = [*chosen.options, *(option for option, value in others.items() if value)]
    measuring_only = [option for option in given if option[2:] not in (context.default_map or {})]  # of no suite
    if run and measuring_only:
        raise Unreadable(
            f"{run} is a finished run, so {', '.join(measuring_only)} would have no effect\n"
            "  Leave out these options, or leave out the run to measure a new one."
        )
    if update and chosen.options and not run and not against:
        raise Unreadable(
            "a preset's baseline run must have all of its cells\n"
            f"  Leave out {', '.join(chosen.options)}, or name a file of your own: --against mine{SUFFIX}."
        )
    if update and against and not against.endswith(SUFFIX):
        raise Unreadable(f"{against}: --update writes a file\n  Name one that ends with {SUFFIX}.")
    preset = finished.run.preset if finished else preset or "smoke"
    # A new baseline run need not be comparable with the one before it.
    baseline_run = None if update else _baseline_run(against, preset)
    plan = None if finished else new_plan(preset, chosen, blocks=blocks, **limits(timeout))
    if plan and not measure:
        _only_tell(plan, baseline_run)
    from zoomgrad.reports.gate import rules
    from zoomgrad.reports.gate.limits import Limits

    bounds = Limits(**context.obj.limits) if context.obj else Limits()

    def judge(store: Store) -> list[Verdict]:
        if not baseline_run:
            return []
        return rules.verdicts(rules.of_store(store), rules.of_store(baseline_run), bounds)

    words = {"--suite": context.obj and short(context.obj.file), "--against": against}
    more = "".join(f" {option} {shlex.quote(value)}" for option, value in words.items() if value)
    rerun = ""
    if plan:
        if baseline_run:
            rules.refuse_incomparable(plan.run, baseline_run.run)
        show_plan(plan, "plus remeasuring suspected regressions")
        with measuring(plan, then=f"zoomgrad check {plan.run.id}{more}", wait=wait) as schedule:
            schedule.execute()
            rerun = settle(schedule, judge, bounds)
        store = schedule.store
    else:
        assert finished
        store = finished
    if baseline_run:
        name = short(store.path) if isinstance(store, RunFile) else store.run.id
        accept = f"zoomgrad check {name} --update{more}"
        _conclude(store, baseline_run, judge(store), rerun, accept, as_json=as_json)
    else:
        _keep(store, Path(against) if against else inside(BASELINE_RUNS, f"{store.run.preset}{SUFFIX}"))


def _only_tell(plan: Plan, baseline_run: Store | None) -> None:
    """Print what `--run` would do, and exit as after wrong use, so that nobody takes it for a passed check."""
    show_plan(plan, "plus remeasuring suspected regressions")
    does = f"compare it with {baseline_run.run.id}" if baseline_run else "make it the baseline run"
    say_next(f"Nothing was measured. To measure this run and {does}, add --run.")
    raise typer.Exit(WRONG_USE)


def settle(schedule: Schedule, judge: Judge, limits: Limits) -> str:
    """Double the blocks of suspects until none is left, or the limit on reruns is reached.

    Returns a sentence about it; empty if nothing was measured again.
    """
    from zoomgrad.reports.gate import rules

    added = 0
    for turn in range(limits.reruns):
        suspects = rules.suspects(judge(schedule.store), measured_again=turn > 0)
        before = added
        for _ in range(schedule.plan.run.blocks << turn if suspects else 0):
            added += schedule.add_block(suspects)
        if added == before:
            break
    return f"Suspected regressions were measured again in {units.count(added, 'more block')}." if added else ""


def _conclude(
    store: Store, baseline_run: Store, found: list[Verdict], rerun: str, accept: str, *, as_json: bool
) -> None:
    """Print the verdicts and store them beside the run. Exits with 1 if one fails.

    accept: the command that makes this run the baseline run.
    """
    from zoomgrad.harness.cli.verdicts import conclude
    from zoomgrad.reports.verdicts import other_tools, verdict_table

    notes = [*filter(None, [rerun]), *other_tools(store.run, baseline_run.run), READING]
    sides = "baseline run", "now"
    table = verdict_table(f"Gate: {store.run.id}", sides, found, notes, against=baseline_run.run.id)
    remedy = f"If the change is intended: {accept}"
    conclude(table, store.file("check.md"), as_json=as_json, with_quiet=False, remedy=remedy)


def _keep(store: Store, file: Path) -> None:
    """Store the run as a baseline run. Raises Unreadable if later runs could not be compared with it."""
    from zoomgrad.reports.measured.outcome import MEASURED, outcomes

    failed = [
        cell.key
        for cell, outcome in outcomes(store.run, store.records()).items()
        if outcome.status not in (MEASURED, "skipped") or (outcome.status == MEASURED and outcome.bits == "unchecked")
    ]
    if failed:
        raise Unreadable(
            f"{store.run.id} can't be a baseline run: "
            f"{units.count(len(failed), 'cell')} without a proven result ({failed[0]} …)\n"
            "  Fix the engine, or remove it from the preset."
        )
    if file.exists():
        say(f"replacing {short(file)}")
    kept = store.keep_as(file)
    say_next(f"{store.run.id} is now the baseline run. Commit {short(kept.path)}")


def _baseline_run(against: Optional[str], preset: str) -> Store:
    """Find the run to compare with. Raises UnknownName, and Unreadable if there is no such baseline run."""
    own = Path(against) if against else BASELINE_RUNS
    for folder in [own] if against or "ZOOMGRAD_BASELINE_RUNS" in os.environ else [own, PACKAGED_RUNS]:
        top = folder.parent if folder.name == "run.json" else folder
        for place in (top, inside(top, f"{preset}{SUFFIX}"), inside(top, preset)):
            if found := stored(place):
                return found
    if against and not against.endswith(SUFFIX):
        return store_of(against)
    raise Unreadable(
        f"{short(own)}: no baseline run for preset {preset}\n"
        "  Make one with the same command and --run --update, or name a run with --against."
    )
