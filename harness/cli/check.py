"""`zoomgrad check`: the gate on speedups."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Optional

import typer

from harness import display, matrix, planning
from harness.cli.app import FAILED, app, names, out, say_next, short, store_of
from harness.cli.measuring import discover, measuring
from harness.cli.options import Wait, share
from harness.interpreters import ROOT
from harness.profile import look_at
from harness.schedule import Plan, Schedule
from reports import gate, verdicts
from reports.gate import Measured, Verdict
from reports.outcome import MEASURED, outcomes
from results import owned, units
from results.files import Unreadable, inside, write_atomically
from results.limits import Limits, read_limits
from results.noise import noise_of
from results.profile import InstructionsProfile
from results.store import REFERENCE, Store


@app.command()
def check(
    run_: Annotated[
        Optional[str], typer.Argument(metavar="[RUN]", help="Judge this run as it is; else a new one is made.")
    ] = None,
    against: Annotated[
        Optional[str], typer.Option(help="A run's id, folder or run.json, or a folder with a run a preset.")
    ] = None,
    preset: Annotated[
        Optional[str], typer.Option(help=f"What a new run measures: {', '.join(matrix.PRESETS)}; smoke unless told.")
    ] = None,
    engines_: Annotated[Optional[str], typer.Option("--engines", help="Only these, separated by commas.")] = None,
    workloads_: Annotated[Optional[str], typer.Option("--workloads", help="Only these.")] = None,
    interpreters_: Annotated[Optional[str], typer.Option("--interpreters", help="Only these.")] = None,
    instructions: Annotated[
        bool, typer.Option("--instructions", help="Count instructions too: slow, but no noise moves them.")
    ] = False,
    until: Annotated[
        Optional[float],
        typer.Option(parser=share, metavar="SHARE", help="Add blocks until every speedup is known to ±5%, say."),
    ] = None,
    update: Annotated[bool, typer.Option("--update", help="Make the run its preset's reference.")] = False,
    wait: Wait = False,
) -> None:
    """Fail if a speedup regressed against the reference, a result is wrong or missing, or compiling takes longer."""
    only = {"--engines": engines_, "--workloads": workloads_, "--interpreters": interpreters_}
    how = {"--preset": preset, "--until": until, "--instructions": instructions}
    _refuse_contradictions(run_, _given(only), _given(how), update)
    finished = store_of(run_) if run_ else None
    preset = finished.run.preset if finished else preset or "smoke"
    # A reference that moves need not be comparable with the one before it.
    reference = None if update else _reference(against, preset)
    judge = Judge(reference, read_limits(ROOT / "pyproject.toml"))
    if finished:
        store, rerun = finished, ""
    else:
        plan = planning.plan(
            preset,
            discover(names(interpreters_)),
            command=["zoomgrad", *sys.argv[1:]],
            only_engines=names(engines_),
            only_workloads=names(workloads_),
            only_interpreters=names(interpreters_),
            precision=until or 0.0,
        )
        store, rerun = _measured(plan, judge, instructions, wait)
    if update:
        _refuse_failed(store)
        kept = _keep(store)
        say_next(f"{store.run.id} is the reference of {store.run.preset} now: commit {short(kept.folder)}")
    elif reference:
        _tell(store, reference, judge(store), rerun)


def _tell(store: Store, reference: Store, found: Sequence[Verdict], rerun: str) -> None:
    """Print the verdicts and keep them beside the run. Exits with 1 where one fails."""
    told = verdicts.judgement(store.run, reference.run, found, rerun)
    page = store.file("check.md")
    write_atomically(page, verdicts.page(told))
    out.print(display.table(f"gate: {told.run.id}", verdicts.HEADINGS, told.rows), "")
    out.print(told.sentence, told.note, "", sep="\n", markup=False)
    if not told.passed:
        say_next(f"Read {short(page)}. If the change is meant: zoomgrad check {store.run.id} --update")
        raise typer.Exit(FAILED)
    say_next(f"The evidence: {short(page)}")


def _given(options: Mapping[str, object]) -> list[str]:
    return [name for name, value in options.items() if value]


def _refuse_contradictions(run: Optional[str], only: Sequence[str], how: Sequence[str], update: bool) -> None:
    """Options that could have no effect, or one that nobody means. only, how: the given ones that choose, or tell."""
    if run and (only or how):
        raise Unreadable(
            f"{run} is judged as it is, without {', '.join([*only, *how])}\n  Leave out the run to make a new one."
        )
    if update and only:
        raise Unreadable(f"a reference has all of its preset's cells\n  Leave out {', '.join(only)}.")


def _measured(plan: Plan, judge: Judge, instructions: bool, wait: bool) -> tuple[Store, str]:
    """A new run, suspects measured again; and what became of them."""
    if judge.reference:
        gate.refuse_incomparable(plan.run, judge.reference.run)
    out.print(display.plan_table(plan))
    out.print(f"estimate: {display.seconds_text(plan.total_seconds)}, without suspects", "")
    with measuring(plan, then=f"zoomgrad check {plan.run.id}", wait=wait) as schedule:
        schedule.execute()
        rerun = settle(schedule, judge)
        if instructions:
            out.print("counting instructions")
            deque(look_at(plan, schedule.store, ["instructions"], seconds=1.0), maxlen=0)
    return schedule.store, rerun


@dataclass(frozen=True)
class Judge:
    """Holds runs against one reference; without a reference, finds nothing."""

    reference: Store | None
    limits: Limits

    def __call__(self, store: Store) -> list[Verdict]:
        if self.reference is None:
            return []
        return gate.judge(_side(store), self._there, self.limits, noise_of(store.run))

    @cached_property
    def _there(self) -> Measured:
        """The reference does not change while a run is settled, and has hundreds of files."""
        assert self.reference is not None
        return _side(self.reference)


def _side(store: Store) -> Measured:
    counts = [profile for profile in store.profiles() if isinstance(profile, InstructionsProfile)]
    return Measured(store.run, store.records(), counts)


def settle(schedule: Schedule, judge: Judge) -> str:
    """Double the blocks of what looks worse, until it does no longer, surely is, or has had its share.

    Tells what was done.
    """
    added = 0
    for turn in range(judge.limits.reruns):
        suspects = gate.suspects(judge(schedule.store), measured_again=turn > 0)
        before = added
        for _ in range(schedule.plan.run.blocks << turn if suspects else 0):
            added += schedule.add_block(suspects)
        if added == before:
            break
    return f"Suspects were measured again, in {units.count(added, 'more block')}." if added else ""


def _refuse_failed(store: Store) -> None:
    """A cell that failed would never be judged again."""
    failed = [
        cell.key
        for cell, found in outcomes(store.run, store.records()).items()
        if found.status not in (MEASURED, "skipped")
    ]
    if failed:
        raise Unreadable(
            f"{store.run.id} is no reference: {units.count(len(failed), 'cell')} without a result ({failed[0]} …)\n"
            "  Mend it, or take the engine out of the preset."
        )


def _keep(store: Store) -> Store:
    """Make the run its preset's reference; says which folder it takes the place of."""
    folder = inside(REFERENCE, store.run.preset)
    if folder.exists():
        out.print(f"replacing {short(folder)}", markup=False, soft_wrap=True)
    return store.keep_as(folder)


def _reference(against: Optional[str], preset: str) -> Store:
    """The run to hold another against. Raises UnknownName, and Unreadable where the preset has no reference."""
    folder = Path(against) if against else REFERENCE
    if folder.name == "run.json":
        folder = folder.parent
    if not against:
        owned.recover(inside(REFERENCE, preset))
    for place in (folder, inside(folder, preset)):
        if (place / "run.json").is_file():
            return Store(place)
    if against:
        return store_of(against)
    raise Unreadable(
        f"{short(REFERENCE)}: no reference for preset {preset}\n"
        f"  Make one with `zoomgrad check --preset {preset} --update`, or name a run with --against."
    )
