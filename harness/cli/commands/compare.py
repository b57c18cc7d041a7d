"""`zoomgrad compare A B`: which of two commits, two interpreters or two runs is faster. See docs/compare.md."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from zoomgrad import engines as all_engines
from zoomgrad.harness import workloads as all_workloads
from zoomgrad.harness.cli import display
from zoomgrad.harness.cli.app import app
from zoomgrad.harness.cli.console import out, say
from zoomgrad.harness.cli.measuring import alone
from zoomgrad.harness.cli.options import (
    Budget,
    Engines,
    Interpreters,
    Json,
    Quiet,
    Seed,
    Selection,
    Wait,
    Workloads,
    selection,
    share,
    some_name,
)
from zoomgrad.harness.cli.preparing import fetch_data
from zoomgrad.harness.compare import SIDES, commits
from zoomgrad.harness.compare.measuring import Place, measure
from zoomgrad.harness.compare.turns import COMPILE_WITHIN, Absence, Outcome, Plan, Subject, verdicts
from zoomgrad.harness.machine import environments, facts, interpreters, named
from zoomgrad.harness.machine.interpreters import Interpreter
from zoomgrad.harness.machine.project import importable
from zoomgrad.harness.run.isolate import RUN
from zoomgrad.results import units
from zoomgrad.results.compare import ERROR, RESULT
from zoomgrad.results.files import Unreadable, inside, mark
from zoomgrad.results.record import Cell
from zoomgrad.results.store import RUNS, Store, stored

if TYPE_CHECKING:  # importing pandas takes a second, which would delay the error about a missing run
    from zoomgrad.reports.verdicts import VerdictTable

ENGINES = ("tcc", "gcc-O1", "rerolled-gcc", "rerolled-clang")
WORKLOADS = ("digits",)
WITHIN = 0.02
BUDGET_SECONDS = 570.0
"""Leaves half a minute of ten for starting, for the last block and for the table."""

Chosen = Mapping[str, Mapping[str, Interpreter]]
"""Side -> interpreter of a cell -> the side's own."""


@app.command()
def compare(
    a: Annotated[
        str,
        typer.Argument(metavar="A", callback=some_name, help="Commit, interpreter or run that it is compared with."),
    ],
    b: Annotated[
        str,
        typer.Argument(metavar="B", callback=some_name, help="Commit, interpreter or run that is compared."),
    ],
    engines: Engines = None,
    workloads: Workloads = None,
    interpreters: Interpreters = None,
    within: Annotated[
        Optional[float],
        typer.Option(parser=share, metavar="SHARE", help="Difference that does not matter. Default: 2%."),
    ] = None,
    budget: Budget = None,
    seed: Seed = None,
    wait: Wait = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Say which of two commits, two interpreters or two runs is faster; the first two are measured in turns.

    Stops when everything is known, or after --budget, which is 9m30s by default.
    """
    chosen = selection(engines, workloads, interpreters)
    if runs := _runs(a, b):
        options = {"--budget": budget, "--seed": seed, "--wait": wait}
        useless = [*chosen.options, *(name for name, value in options.items() if value)]
        if useless:
            raise Unreadable(f"{a} is a run, so {', '.join(useless)} would have no effect\n  Leave out these options.")
        _compare_runs(*runs, within or WITHIN, as_json=as_json)
        return
    sides, pythons = _sides(a, b, chosen.interpreters)
    now = datetime.now(UTC)
    cells = _cells(chosen, list(pythons["base"]))
    plan = Plan(
        id=f"{now:%Y-%m-%dT%H%M%S}-compare",
        created_at=now,
        command=("zoomgrad", *sys.argv[1:]),
        **sides,
        cells=cells,
        strict=tuple({cell.engine for cell in cells if all_engines.load(cell.engine).strict}),
        within=within or WITHIN,
        budget_seconds=budget or BUDGET_SECONDS,
        seed=secrets.randbelow(2**32) if seed is None else seed,
        machine=facts.gather(),
    )
    _compare_in_turns(plan, pythons, wait=wait, as_json=as_json)


def _runs(a: str, b: str) -> tuple[Store, Store] | None:
    """The two runs of these names; None if neither is a run. Raises Unreadable if only one is, or both are the same."""
    one, other = (stored(Path(name)) or stored(RUNS / name) if "\0" not in name else None for name in (a, b))
    if not one or not other:
        if one or other:
            stranger = b if one else a
            raise Unreadable(f"{stranger}: not a run, but the other one is\n  Name two runs: ids, folders or files.")
        return None
    if one.run == other.run:
        raise Unreadable(f"{a} and {b} are the same run\n  Compare two runs.")
    return one, other


def _sides(a: str, b: str, hosts: list[str]) -> tuple[dict[str, Subject], Chosen]:
    """The two commits, each with the interpreters of the cells; or the two interpreters. Raises Unreadable."""
    everything, names = named.asked([a, b], interpreters.discover())
    by_name = {interpreter.name: interpreter for interpreter in everything}
    are_interpreters = [name in by_name for name in names]
    if not any(are_interpreters):
        subjects = {"base": commits.commit(a), "head": commits.commit(b)}
        commits.refuse_changes(subjects)
        everything, hosts = named.asked(hosts, everything)
        chosen = [interpreters.choose(name, everything) for name in hosts] or [interpreters.reference(everything)]
        return subjects, {side: {interpreter.name: interpreter for interpreter in chosen} for side in SIDES}
    if not all(are_interpreters):
        stranger = b if are_interpreters[0] else a
        raise Unreadable(f"{stranger}: not an interpreter, but the other one is\n  `zoomgrad list` names them.")
    if hosts:
        raise Unreadable("interpreters are compared, so --interpreters would have no effect\n  Leave it out.")
    both = dict(zip(SIDES, names, strict=True))
    return (
        {side: Subject(name=name) for side, name in both.items()},
        {side: {both["base"]: by_name[name]} for side, name in both.items()},
    )


def _cells(chosen: Selection, hosts: list[str]) -> tuple[Cell, ...]:
    """The cells of a comparison, each once. Raises UnknownName before anything is measured."""
    return tuple(
        dict.fromkeys(
            Cell(engine=all_engines.load(engine).name, interpreter=host, workload=all_workloads.load(workload).name)
            for workload in chosen.workloads or WORKLOADS
            for host in hosts
            for engine in chosen.engines or ENGINES
        )
    )


def _compare_runs(old: Store, new: Store, within: float, *, as_json: bool) -> None:
    """Compare the speedups and compile times of two finished runs, as the gate does but without its tolerance."""
    from zoomgrad.harness.cli.verdicts import conclude
    from zoomgrad.reports.gate import rules
    from zoomgrad.reports.gate.limits import Limits
    from zoomgrad.reports.verdicts import other_tools, verdict_table

    limits = Limits(slowdown=within, compile_growth=max(within, COMPILE_WITHIN), reruns=0)
    found = rules.verdicts(rules.of_store(new), rules.of_store(old), limits, tolerant=False)
    notes = (
        *other_tools(new.run, old.run),
        "Speedups over baseline are compared, each within its own run, and compile times in steps of the baseline; "
        "seconds are never compared across runs. “takes” is the change of the time, with its 95 % interval. “slower” "
        "and “faster” also hold for all figures together: equal code looks so in at most one comparison in a hundred.",
    )
    table = verdict_table(f"{new.run.id} against {old.run.id}", (old.run.id, new.run.id), found, notes)
    conclude(table, None, as_json=as_json)


def _compare_in_turns(plan: Plan, pythons: Chosen, *, wait: bool, as_json: bool) -> None:
    """Measure both sides in turns, print the table, and store it beside the blocks."""
    from zoomgrad.harness.cli.verdicts import conclude

    fetch_data(dict.fromkeys(cell.workload for cell in plan.cells))
    os.environ[RUN] = plan.id
    outcomes: list[Outcome] = []
    interrupted = False
    with alone(wait=wait), _places(plan, pythons) as places:
        until = time.monotonic() + plan.budget_seconds
        folder = _folder(plan.id)
        log = folder / "blocks.jsonl"
        _append(log, plan)
        cells = f"{units.count(len(plan.cells), 'cell')}, at most {display.seconds_text(plan.budget_seconds)}"
        say(f"{plan.id}: {plan.head.name} against {plan.base.name}: {cells}")
        try:
            for outcome in measure(plan, places, until):
                outcomes.append(outcome)
                _append(log, outcome)
                _tell(plan, outcomes)
        except KeyboardInterrupt:  # what is known so far is worth printing
            interrupted = True
    conclude(_table(plan, outcomes), folder / "compare.md", as_json=as_json, interrupted=interrupted)


@contextlib.contextmanager
def _places(plan: Plan, pythons: Chosen) -> Iterator[dict[str, Place]]:
    """Where each side runs: the folder of its packages, and an environment for each of its interpreters."""
    made: dict[str, dict[str, tuple[Path, bool]]] = {side: {} for side in SIDES}
    for side, by_cell in pythons.items():
        for name, interpreter in by_cell.items():
            with out.status(f"making the environment for {interpreter.name}"):
                made[side][name] = environments.environment(interpreter), interpreter.warms_up
    with contextlib.ExitStack() as stack:
        folders = dict.fromkeys(SIDES, importable())
        if plan.base.sha:
            folders = stack.enter_context(commits.checkouts({"base": plan.base, "head": plan.head}))
        yield {side: Place(folders[side], made[side]) for side in SIDES}


def _folder(name: str) -> Path:
    """Make a folder beside the runs."""
    folder = inside(RUNS, name)
    folder.mkdir(parents=True)
    mark(folder, name)
    return folder


def _append(file: Path, one: Plan | Outcome) -> None:
    """Add a line of JSON, and flush it to the disk."""
    with file.open("ab") as lines:
        lines.write(f'{{"{type(one).__name__.lower()}":{one.model_dump_json()}}}\n'.encode())
        lines.flush()
        os.fsync(lines.fileno())


def _tell(plan: Plan, outcomes: list[Outcome]) -> None:
    """Print a failure at once, and one line for each round: how many figures are known so far."""
    last = outcomes[-1]
    if isinstance(last, Absence):
        say(f"{plan.subject(last.cell)}: no result{f' on {last.side}' if last.side else ''}: {last.reason}")
    if len(outcomes) % len(plan.cells) == 0:
        compared = [one for one in verdicts(plan, outcomes) if one.figure != RESULT]
        known = sum(one.word != "unsure" for one in compared)
        say(f"[{known}/{len(compared)} known] {units.count(len(outcomes), 'block')}")


def _table(plan: Plan, outcomes: list[Outcome]) -> VerdictTable:
    from zoomgrad.reports.verdicts import verdict_table

    found = verdicts(plan, outcomes)
    notes = [
        f"“takes” is the change of a time. All {plan.family} intervals hold together, at any time, with "
        f"{100 * (1 - ERROR):g} % probability: equal code is called slower or faster in at most {100 * ERROR:g} of a "
        "hundred comparisons."
    ]
    if any(one.word == "unsure" and one.figure != RESULT for one in found):
        notes.append("“unsure” needs more blocks: raise --budget.")
    return verdict_table(f"{plan.head} against {plan.base}", (plan.base.name, plan.head.name), found, notes)
