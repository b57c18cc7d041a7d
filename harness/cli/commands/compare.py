"""`zoomgrad compare A B`: which of two commits, two interpreters or two runs is faster. See docs/trust.md."""

from __future__ import annotations

import contextlib
import secrets
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from zoomgrad import engines as all_engines
from zoomgrad.harness import workloads as all_workloads
from zoomgrad.harness.cli import display, options
from zoomgrad.harness.cli.app import app
from zoomgrad.harness.cli.console import out, say
from zoomgrad.harness.cli.measuring import alone
from zoomgrad.harness.cli.preparing import fetch_data
from zoomgrad.harness.compare.measuring import measure
from zoomgrad.harness.compare.sides import Side, placed, sides
from zoomgrad.harness.compare.turns import COMPILE_WITHIN, Absence, Block, Outcome, Plan, verdicts
from zoomgrad.harness.machine import facts
from zoomgrad.results import units
from zoomgrad.results.compare import ERROR, RESULT
from zoomgrad.results.files import Unreadable, inside, mark
from zoomgrad.results.record import Cell
from zoomgrad.results.store import RUNS, Store, stored

ENGINES = ("tcc", "gcc-O1", "rerolled-gcc", "rerolled-clang")
WORKLOADS = ("digits",)
WITHIN = 0.02
BUDGET_SECONDS = 570.0
"""Leaves half a minute of ten for starting, for the last block and for the table."""
OF_RUNS = (
    "Speedups over baseline are compared, each within its own run, and compile times in steps of the baseline; seconds "
    "are never compared across runs. “takes” is the change of the time, with a 95 % interval. Equal code is called "
    "slower or faster in at most one comparison in a hundred."
)


def _a_side(name: str, text: str) -> Any:
    return typer.Argument(metavar=name, callback=options.some_name, help=f"Commit, interpreter or run {text}.")


@app.command()
def compare(
    a: Annotated[str, _a_side("A", "that B is compared with")],
    b: Annotated[str, _a_side("B", "that may be slower or faster")],
    engines: options.Engines = None,
    workloads: options.Workloads = None,
    interpreters: options.Interpreters = None,
    within: Annotated[
        Optional[float],
        typer.Option(parser=options.share, metavar="SHARE", help="Difference that does not matter. Default: 2%."),
    ] = None,
    budget: options.Budget = None,
    seed: options.Seed = None,
    wait: options.Wait = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Say which of two commits, two interpreters or two runs is faster; the first two are measured in turns.

    Stops when every cell has a verdict, or after --budget, which is 9m30s by default.
    """
    chosen = options.selection(engines, workloads, interpreters)
    if runs := _runs(a, b):
        others = {"--budget": budget, "--seed": seed, "--wait": wait}
        useless = [*chosen.options, *(name for name, value in others.items() if value)]
        if useless:
            raise Unreadable(f"{a} is a run, so {', '.join(useless)} would have no effect\n  Leave out these options.")
        _compare_runs(*runs, within or WITHIN, as_json=as_json)
        return
    both = sides(a, b, chosen.interpreters)
    cells = tuple(
        dict.fromkeys(
            Cell(engine=all_engines.load(engine).name, interpreter=host, workload=all_workloads.load(workload).name)
            for workload in chosen.workloads or WORKLOADS
            for host in both["base"].hosts
            for engine in chosen.engines or ENGINES
        )
    )
    now = datetime.now(UTC)
    plan = Plan(
        id=f"{now:%Y-%m-%dT%H%M%S}-compare",
        created_at=now,
        command=("zoomgrad", *sys.argv[1:]),
        **{side: one.subject for side, one in both.items()},
        cells=cells,
        strict=tuple({cell.engine for cell in cells if all_engines.load(cell.engine).strict}),
        within=within or WITHIN,
        budget_seconds=budget or BUDGET_SECONDS,
        seed=secrets.randbelow(2**32) if seed is None else seed,
        machine=facts.gather(),
    )
    _compare_in_turns(plan, both, wait=wait, as_json=as_json)


def _runs(a: str, b: str) -> tuple[Store, Store] | None:
    """The two runs of these names; None if neither is a run. Raises Unreadable if only one is, or both are the same."""
    one, other = (stored(Path(name)) or stored(RUNS / name) if "\0" not in name else None for name in (a, b))
    if not one and not other:
        return None
    if not one or not other:
        unknown = b if one else a
        raise Unreadable(f"{unknown}: not a run, but the other one is\n  Name two runs: ids, folders or files.")
    if one.run == other.run:
        raise Unreadable(f"{a} and {b} are the same run\n  Compare two runs.")
    return one, other


def _compare_runs(old: Store, new: Store, within: float, *, as_json: bool) -> None:
    """Compare the speedups and compile times of two finished runs, as the gate does but without its tolerance."""
    # Imported late: pandas takes a second, which would delay the error about a missing run.
    from zoomgrad.harness.cli.verdicts import conclude
    from zoomgrad.reports.gate import rules
    from zoomgrad.reports.gate.limits import Limits
    from zoomgrad.reports.verdicts import other_tools, verdict_table

    limits = Limits(slowdown=within, compile_growth=max(within, COMPILE_WITHIN), reruns=0)
    compared = rules.verdicts(rules.measured_run(new), rules.measured_run(old), limits, tolerant=False)
    notes = (*other_tools(new.run, old.run), OF_RUNS)
    table = verdict_table(f"{new.run.id} against {old.run.id}", (old.run.id, new.run.id), compared, notes)
    conclude(table, None, as_json=as_json)


def _compare_in_turns(plan: Plan, both: Mapping[str, Side], *, wait: bool, as_json: bool) -> None:
    """Measure both sides in turns, print the table, and store it beside the blocks."""
    from zoomgrad.harness.cli.verdicts import conclude
    from zoomgrad.reports.verdicts import verdict_table

    fetch_data(dict.fromkeys(cell.workload for cell in plan.cells))
    outcomes: list[Outcome] = []
    interrupted = False
    with contextlib.ExitStack() as stack:
        stack.enter_context(alone(wait=wait))
        with out.status("making environments"):
            places = stack.enter_context(placed(both))
        until = time.monotonic() + plan.budget_seconds
        folder = inside(RUNS, plan.id)
        folder.mkdir(parents=True)
        mark(folder, plan.id)
        cells = f"{units.count(len(plan.cells), 'cell')}, at most {display.seconds_text(plan.budget_seconds)}"
        say(f"{plan.id}: {plan.head.name} against {plan.base.name}: {cells}")
        try:
            for outcome in measure(plan, places, until, folder / "blocks.jsonl"):
                outcomes.append(outcome)
                _print_progress(plan, outcomes)
        except KeyboardInterrupt:  # print the verdicts so far
            interrupted = True
    compared = verdicts(plan, outcomes)
    notes = [
        f"“takes” is the change of a time. All {plan.family} intervals hold together, at any time, with "
        f"{100 * (1 - ERROR):g} % probability: equal code is called slower or faster in at most {100 * ERROR:g} of a "
        "hundred comparisons. “unsure” needs more blocks: raise --budget."
    ]
    table = verdict_table(f"{plan.head} against {plan.base}", (plan.base.name, plan.head.name), compared, notes)
    conclude(table, folder / "compare.md", as_json=as_json, interrupted=interrupted)


def _print_progress(plan: Plan, outcomes: list[Outcome]) -> None:
    """Print a failure at once, and one line for each block: how many figures are known so far."""
    last = outcomes[-1]
    if isinstance(last, Absence):
        say(f"{plan.subject(last.cell)}: no result{f' on {last.side}' if last.side else ''}: {last.reason}")
    numbers = [one.block for one in outcomes if isinstance(one, Block)]
    if numbers[-1:] != numbers[-2:-1]:  # the first cell of another block
        compared = [one for one in verdicts(plan, outcomes) if one.figure != RESULT]
        known = sum(one.word != "unsure" for one in compared)
        say(f"[{known}/{len(compared)} known] block {numbers[-1] + 1}")
