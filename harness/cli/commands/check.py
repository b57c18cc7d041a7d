"""`zoomgrad check`: compare a new or finished run with the baseline run, and fail on regressions."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

import typer

from zoomgrad.harness.cli import display
from zoomgrad.harness.cli.app import FAILED, app, out, say_next, short
from zoomgrad.harness.cli.measuring import measuring, requested
from zoomgrad.harness.cli.options import Engines, Interpreters, Wait, Workloads, names, share, some_name
from zoomgrad.harness.cli.stores import store_of
from zoomgrad.harness.plan import planning, presets
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.harness.run.schedule import Schedule
from zoomgrad.reports.gate import rules
from zoomgrad.reports.gate.limits import Limits, read_limits
from zoomgrad.reports.gate.rules import MeasuredRun
from zoomgrad.reports.measured.outcome import MEASURED, outcomes
from zoomgrad.reports.verdicts import verdict_table
from zoomgrad.results import comparability, units
from zoomgrad.results.compare import Verdict
from zoomgrad.results.files import Unreadable, inside, write_atomically
from zoomgrad.results.places import ROOT
from zoomgrad.results.run_file import SUFFIX
from zoomgrad.results.store import BASELINE_RUNS, RunFile, Store, stored

READING = (
    "“takes” is the change of a time relative to the baseline's, new run over baseline run: median of blocks and 95 % "
    "interval. The gate never compares the seconds of two runs. “may take” is the limit. “slower” means that the whole "
    "interval is beyond it, and that equal code looks so in at most one run in a hundred; “unsure” that the change may "
    "be on either side of it."
)


@app.command()
def check(
    run_: Annotated[
        Optional[str],
        typer.Argument(
            metavar="RUN",
            callback=some_name,
            help="Finished run to check: id, folder or file. Default: measure a new one.",
        ),
    ] = None,
    against: Annotated[
        Optional[str],
        typer.Option(
            callback=some_name,
            help="Baseline run: id, folder or file, or a folder with one run per preset. Default: the committed run.",
        ),
    ] = None,
    preset: Annotated[
        Optional[str],
        typer.Option(callback=some_name, help=f"Preset of a new run: {', '.join(presets.PRESETS)}. Default: smoke."),
    ] = None,
    engines_: Engines = None,
    workloads_: Workloads = None,
    interpreters_: Interpreters = None,
    until: Annotated[
        Optional[float],
        typer.Option(
            parser=share, metavar="SHARE", help="Add blocks until every speedup is known to within this share, e.g. 5%."
        ),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Store the run as its preset's baseline run instead of checking it.")
    ] = False,
    wait: Wait = False,
) -> None:
    """Fail if a speedup regressed against the baseline run, a result is wrong or missing, or compiling takes longer."""
    only = {"--engines": engines_, "--workloads": workloads_, "--interpreters": interpreters_}
    how = {"--preset": preset, "--until": until}
    _refuse_contradictions(run_, _given(only), _given(how), update)
    finished = store_of(run_) if run_ else None
    preset = finished.run.preset if finished else preset or "smoke"
    # A new baseline run need not be comparable with the one before it.
    baseline_run = None if update else _baseline_run(against, preset)
    limits = read_limits(ROOT / "pyproject.toml")
    gate = Gate(measured_run(baseline_run) if baseline_run else None, limits)
    if finished:
        store, rerun = finished, ""
    else:
        found, only_interpreters = requested(names(interpreters_))
        plan = planning.plan(
            preset,
            found,
            command=["zoomgrad", *sys.argv[1:]],
            only_engines=names(engines_),
            only_workloads=names(workloads_),
            only_interpreters=only_interpreters,
            precision=until or 0.0,
        )
        store, rerun = _measured(plan, gate, wait)
    if update:
        _refuse_failed(store)
        kept = _keep(store)
        say_next(f"{store.run.id} is now the baseline run of preset {store.run.preset}. Commit {short(kept.path)}")
    elif baseline_run:
        _print(store, baseline_run, gate.verdicts(store), rerun)


def _print(store: Store, baseline_run: Store, found: Sequence[Verdict], rerun: str) -> None:
    """Print the verdicts and store them beside the run. Exits with 1 if one fails."""
    notes = [*filter(None, [rerun]), *differences(store, baseline_run), READING]
    title, sides = f"Gate: {store.run.id}", ("baseline run", "now")
    table = verdict_table(title, sides, found, notes, against=baseline_run.run.id)
    file = store.file("check.md")
    write_atomically(file, table.markdown())
    out.print(display.table(table.title, table.headings, table.rows), "")
    out.print(table.sentence, *table.notes, "", sep="\n", markup=False)
    if table.failed:
        say_next(f"Read {short(file)}. If the change is intended: zoomgrad check {_name(store)} --update")
        raise typer.Exit(FAILED)
    say_next(f"Passed. For details read {short(file)}")


def differences(new: Store, old: Store) -> list[str]:
    """A sentence if the two runs' tools differ."""
    unlike = comparability.unlike_tools(new.run, old.run)
    said = "; ".join(unlike)
    return [f"Tools differ from those of {old.run.id}, which alone may change speedups: {said}."] if unlike else []


def _name(store: Store) -> str:
    """The run's name on the command line."""
    return short(store.place) if isinstance(store, RunFile) else store.run.id


def _given(options: Mapping[str, object]) -> list[str]:
    return [name for name, value in options.items() if value]


def _refuse_contradictions(run: Optional[str], only: Sequence[str], how: Sequence[str], update: bool) -> None:
    """Raise Unreadable for options that would have no effect.

    only: given options that choose cells. how: given options about measuring.
    """
    if run and (only or how):
        raise Unreadable(
            f"{run} is a finished run, so {', '.join([*only, *how])} would have no effect\n"
            "  Leave out these options, or leave out the run to measure a new one."
        )
    if update and only:
        raise Unreadable(f"a baseline run must have all cells of its preset\n  Leave out {', '.join(only)}.")


def _measured(plan: Plan, gate: Gate, wait: bool) -> tuple[Store, str]:
    """Measure a new run, then remeasure its suspects. Return its store, and a sentence about the suspects."""
    if gate.baseline_run:
        rules.refuse_incomparable(plan.run, gate.baseline_run.run)
    out.print(display.plan_table(plan))
    out.print(f"estimate: {display.seconds_text(plan.total_seconds)}, plus remeasuring suspected regressions", "")
    with measuring(plan, then=f"zoomgrad check {plan.run.id}", wait=wait) as schedule:
        schedule.execute()
        rerun = settle(schedule, gate)
    return schedule.store, rerun


@dataclass(frozen=True)
class Gate:
    """Compares runs with one baseline run. Without one it gives no verdicts."""

    baseline_run: MeasuredRun | None
    limits: Limits

    def verdicts(self, store: Store) -> list[Verdict]:
        if self.baseline_run is None:
            return []
        return rules.verdicts(measured_run(store), self.baseline_run, self.limits)


def measured_run(store: Store) -> MeasuredRun:
    """Return a stored run with what the rules need of it."""
    return MeasuredRun(store.run, store.records())


def settle(schedule: Schedule, gate: Gate) -> str:
    """Double the blocks of suspects until none is left, or the limit on reruns is reached.

    Returns a sentence about it; empty if nothing was measured again.
    """
    added = 0
    for turn in range(gate.limits.reruns):
        suspects = rules.suspects(gate.verdicts(schedule.store), measured_again=turn > 0)
        before = added
        for _ in range(schedule.plan.run.blocks << turn if suspects else 0):
            added += schedule.add_block(suspects)
        if added == before:
            break
    return f"Suspected regressions were measured again in {units.count(added, 'more block')}." if added else ""


def _refuse_failed(store: Store) -> None:
    """Raise Unreadable if a cell failed or was not proven, because later runs could not be compared with it."""
    failed = [
        cell.key
        for cell, found in outcomes(store.run, store.records()).items()
        if found.status not in (MEASURED, "skipped") or (found.status == MEASURED and found.bits == "unchecked")
    ]
    if failed:
        raise Unreadable(
            f"{store.run.id} can't be a baseline run: "
            f"{units.count(len(failed), 'cell')} without a proven result ({failed[0]} …)\n"
            "  Fix the engine, or remove it from the preset."
        )


def _keep(store: Store) -> RunFile:
    """Store the run as its preset's baseline run, and print which file it replaces."""
    file = inside(BASELINE_RUNS, f"{store.run.preset}{SUFFIX}")
    if file.exists():
        out.print(f"replacing {short(file)}", markup=False, soft_wrap=True)
    return store.keep_as(file)


def _baseline_run(against: Optional[str], preset: str) -> Store:
    """Find the run to compare with. Raises UnknownName, and Unreadable if the preset has no baseline run."""
    folder = Path(against) if against else BASELINE_RUNS
    if folder.name == "run.json":
        folder = folder.parent
    for place in (folder, inside(folder, f"{preset}{SUFFIX}"), inside(folder, preset)):
        if found := stored(place):
            return found
    if against:
        return store_of(against)
    raise Unreadable(
        f"{short(BASELINE_RUNS)}: no baseline run for preset {preset}\n"
        f"  Make one with `zoomgrad check --preset {preset} --update`, or name a run with --against."
    )
