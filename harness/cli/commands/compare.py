"""`zoomgrad compare A B`: which of two commits, two interpreters or two runs is faster. See docs/compare.md."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Optional

import typer

from zoomgrad import engines
from zoomgrad.harness import workloads
from zoomgrad.harness.cli import display
from zoomgrad.harness.cli.app import FAILED, INTERRUPTED, app, out, say_next, short
from zoomgrad.harness.cli.commands.check import differences, measured_run
from zoomgrad.harness.cli.measuring import alone
from zoomgrad.harness.cli.options import Engines, Interpreters, Wait, Workloads, duration, names, share, some_name
from zoomgrad.harness.cli.preparing import fetch_data
from zoomgrad.harness.compare import commits
from zoomgrad.harness.compare.folder import Folder
from zoomgrad.harness.compare.rounds import Comparison, Place
from zoomgrad.harness.compare.turns import COMPILE_WITHIN, Plan, Subject, verdicts
from zoomgrad.harness.machine import environments, facts, interpreters, named
from zoomgrad.harness.machine.interpreters import Interpreter
from zoomgrad.harness.machine.project import importable
from zoomgrad.harness.run.isolate import RUN
from zoomgrad.reports.gate import rules
from zoomgrad.reports.gate.limits import Limits
from zoomgrad.reports.measured.races import same_run
from zoomgrad.reports.verdicts import VerdictTable, verdict_table
from zoomgrad.results import units
from zoomgrad.results.compare import COMPILE_TIME, ERROR, RESULT, STEP, Verdict
from zoomgrad.results.files import Unreadable, write_atomically
from zoomgrad.results.printable import printable
from zoomgrad.results.record import Cell
from zoomgrad.results.store import RUNS, Store, stored

ENGINES = ("tcc", "gcc-O1", "rerolled-gcc", "rerolled-clang")
WORKLOADS = ("digits",)
WITHIN = 0.02
BUDGET_SECONDS = 570.0
"""Leaves half a minute of ten for starting, for the last block and for the table."""


@app.command()
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="Commit, interpreter or run to compare with.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Commit, interpreter or run that may be slower or faster.")],
    engines_: Engines = None,
    workloads_: Workloads = None,
    interpreters_: Interpreters = None,
    within: Annotated[
        Optional[float],
        typer.Option(parser=share, metavar="SHARE", help="Difference that does not matter. Default: 2%."),
    ] = None,
    budget: Annotated[
        Optional[float],
        typer.Option(parser=duration, metavar="TIME", help="Stop after this time in any case. Default: 9m30s."),
    ] = None,
    seed: Annotated[
        Optional[int], typer.Option(min=0, help="Seed of the order and the layouts. Default: random.")
    ] = None,
    compile_times: Annotated[bool, typer.Option(help="Also compare compile times.")] = True,
    wait: Wait = False,
) -> None:
    """Say which of two commits, two interpreters or two runs is faster; the first two are measured in turns."""
    some_name(a), some_name(b)
    if runs := _runs(a, b):
        measuring = {
            "--engines": engines_,
            "--workloads": workloads_,
            "--interpreters": interpreters_,
            "--budget": budget,
            "--seed": seed,
            "--wait": wait,
            "--no-compile-times": not compile_times,
        }
        given = [name for name, value in measuring.items() if value]
        if given:
            raise Unreadable(f"{a} is a run, so {', '.join(given)} would have no effect\n  Leave out these options.")
        _conclude(_between_runs(*runs, within or WITHIN))
        return
    found = interpreters.discover()
    found, (one, other) = named.asked([a, b], found)
    by_name = {interpreter.name: interpreter for interpreter in found}
    are_interpreters = [name in by_name for name in (one, other)]
    if any(are_interpreters):
        if not all(are_interpreters):
            stranger = b if are_interpreters[0] else a
            raise Unreadable(f"{stranger}: not an interpreter, but the other one is\n  `zoomgrad list` names them.")
        if interpreters_:
            raise Unreadable("interpreters are compared, so --interpreters would have no effect\n  Leave it out.")
        sides = {"base": Subject(name=one), "head": Subject(name=other)}
        chosen = {"base": {one: by_name[one]}, "head": {one: by_name[other]}}
    else:
        sides = {"base": commits.commit(a), "head": commits.commit(b)}
        commits.refuse_changes(sides)
        found, asked = named.asked(names(interpreters_), found)
        hosts = [interpreters.choose(name, found) for name in asked] or [interpreters.reference(found)]
        chosen = {side: {interpreter.name: interpreter for interpreter in hosts} for side in sides}
    now = datetime.now(UTC)
    plan = Plan(
        id=f"{now:%Y-%m-%dT%H%M%S}-compare",
        created_at=now,
        command=("zoomgrad", *sys.argv[1:]),
        base=sides["base"],
        head=sides["head"],
        cells=_cells(names(engines_) or ENGINES, list(chosen["base"]), names(workloads_) or WORKLOADS),
        strict=tuple(name for name in names(engines_) or ENGINES if engines.load(name).strict),
        figures=(STEP, COMPILE_TIME) if compile_times else (STEP,),
        within=within or WITHIN,
        budget_seconds=budget or BUDGET_SECONDS,
        seed=secrets.randbelow(2**32) if seed is None else seed,
        machine=facts.gather(),
    )
    _in_turns(plan, chosen, wait=wait)


def _runs(a: str, b: str) -> tuple[Store, Store] | None:
    """The two runs of these names; None if neither is a run. Raises Unreadable if only one is, or both are the same."""
    one, other = (stored(Path(name)) or stored(RUNS / name) if "\0" not in name else None for name in (a, b))
    if not one or not other:
        if one or other:
            stranger = b if one else a
            raise Unreadable(f"{stranger}: not a run, but the other one is\n  Name two runs: ids, folders or files.")
        return None
    if same_run(one.run, other.run):
        raise Unreadable(f"{a} and {b} are the same run\n  Compare two runs.")
    return one, other


def _cells(engine_names: Sequence[str], hosts: Sequence[str], workload_names: Sequence[str]) -> tuple[Cell, ...]:
    """The cells of a comparison, each once. Raises UnknownName before anything is measured."""
    return tuple(
        dict.fromkeys(
            Cell(engine=engines.load(engine).name, interpreter=host, workload=workloads.load(workload).name)
            for workload in workload_names
            for host in hosts
            for engine in engine_names
        )
    )


def _between_runs(old: Store, new: Store, within: float) -> VerdictTable:
    """Compare the speedups and compile times of two finished runs, as the gate does but without its tolerance."""
    limits = Limits(slowdown=within, compile_growth=max(within, COMPILE_WITHIN), reruns=0)
    found = rules.verdicts(measured_run(new), measured_run(old), limits, tolerant=False)
    notes = (
        *differences(new, old),
        "Speedups over baseline are compared, each within its own run, and compile times in steps of the baseline; "
        "seconds are never compared across runs. “takes” is the change of the time, with its 95 % interval. “slower” "
        "and “faster” also hold for all figures together: equal code looks so in at most one comparison in a hundred.",
    )
    return verdict_table(f"{new.run.id} against {old.run.id}", (old.run.id, new.run.id), found, notes)


def _in_turns(plan: Plan, chosen: Mapping[str, Mapping[str, Interpreter]], *, wait: bool) -> None:
    """Measure both sides in turns, print the table, and store it beside the blocks."""
    fetch_data(dict.fromkeys(cell.workload for cell in plan.cells))
    pythons: dict[str, dict[str, tuple[Path, bool]]] = {}
    for side, by_cell in chosen.items():
        pythons[side] = {}
        for name, interpreter in by_cell.items():
            with out.status(f"making the environment for {interpreter.name}"):
                pythons[side][name] = environments.environment(interpreter), interpreter.warms_up
    os.environ[RUN] = plan.id
    with alone(wait=wait), _checkouts(plan) as checkouts:
        until = time.monotonic() + plan.budget_seconds
        places = {side: Place(checkout, pythons[side]) for side, checkout in checkouts.items()}
        folder, plan = Folder.create(plan)
        cells = f"{units.count(len(plan.cells), 'cell')}, at most {display.seconds_text(plan.budget_seconds)}"
        out.print(f"{plan.id}: {plan.head.name} against {plan.base.name}: {cells}", markup=False, soft_wrap=True)
        comparison = Comparison(plan, places, _tell, folder.append, until=until)
        interrupted = False
        try:
            comparison.measure()
        except KeyboardInterrupt:  # what is known so far is worth printing
            interrupted = True
    _conclude(_table(comparison), folder, interrupted=interrupted)


@contextlib.contextmanager
def _checkouts(plan: Plan) -> Iterator[dict[str, Path]]:
    """The folder of each side's packages."""
    if plan.base.sha:
        with commits.checkouts({"base": plan.base, "head": plan.head}) as made:
            yield made
    else:
        yield dict.fromkeys(("base", "head"), importable())


def _table(comparison: Comparison) -> VerdictTable:
    plan = comparison.plan
    found = verdicts(plan, comparison.blocks, comparison.absences)
    sides = plan.base.name, plan.head.name
    title = " against ".join(f"{one.name} ({one.sha[:12]})" if one.sha else one.name for one in (plan.head, plan.base))
    notes = [
        f"“takes” is the change of a time. All {plan.family} intervals hold together, at any time, with "
        f"{100 * (1 - plan.error):g} % probability: equal code is called slower or faster in at most "
        f"{100 * ERROR:g} of a hundred comparisons."
    ]
    if any(one.word == "unsure" and one.figure != RESULT for one in found):
        notes.append("“unsure” needs more blocks: raise --budget.")
    return verdict_table(title, sides, found, notes)


def _conclude(table: VerdictTable, folder: Folder | None = None, *, interrupted: bool = False) -> None:
    """Print the table, and store it beside the blocks. Exits with 1 if B is worse."""
    out.print("", display.table(table.title, table.headings, [*table.rows, *table.quiet]), "")
    out.print(*table.notes, sep="\n", markup=False, soft_wrap=True)
    where = ""
    if folder:
        summary = folder.file("compare.md")
        write_atomically(summary, table.markdown())
        where = f" For details read {short(summary)}"
    say_next(f"{'Interrupted. ' if interrupted else ''}{table.sentence}{where}")
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if table.failed:
        raise typer.Exit(FAILED)


def _tell(line: str, found: Sequence[Verdict]) -> None:
    """Print one line for each block: how many figures are known so far."""
    compared = [one for one in found if one.figure != RESULT]
    known = sum(one.word != "unsure" for one in compared)
    out.print(printable(f"[{known}/{len(compared)} known] {line}"), markup=False, soft_wrap=True)
