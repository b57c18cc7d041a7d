"""`zoomgrad compare A B`: which of two commits, two interpreters or two runs is faster. See docs/trust.md."""

from __future__ import annotations

import contextlib
import secrets
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from zoomgrad import engines as all_engines
from zoomgrad.harness import workloads as all_workloads
from zoomgrad.harness.cli import display, options
from zoomgrad.harness.cli.app import app
from zoomgrad.harness.cli.console import complain, out, say
from zoomgrad.harness.cli.measuring import alone
from zoomgrad.harness.cli.preparing import fetch_data
from zoomgrad.harness.cli.verdicts import conclude
from zoomgrad.harness.compare.sides import SIDES, placed, sides
from zoomgrad.harness.compare.turns import COMPILE_WITHIN, Comparison
from zoomgrad.harness.machine import facts
from zoomgrad.reports.verdicts import in_turns, of_runs, verdict_table
from zoomgrad.results import units
from zoomgrad.results.compare import RESULT, Limits
from zoomgrad.results.files import Unreadable, inside, mark
from zoomgrad.results.places import ROOT
from zoomgrad.results.record import Cell
from zoomgrad.results.store import RUNS, Store, stored

ENGINES = ("tcc", "gcc-O1", "rerolled-gcc", "rerolled-clang")
WORKLOADS = ("digits",)
WITHIN = 0.02
BUDGET_SECONDS = 570.0
"""Leaves half a minute of ten for starting, for the last block and for the table."""


def _a_side(name: str, text: str) -> Any:
    return typer.Argument(metavar=name, callback=options.some_name, help=f"Commit, interpreter or run {text}.")


@app.command()
def compare(
    context: typer.Context,
    a: Annotated[str, _a_side("A", "that B is compared with")],
    b: Annotated[str, _a_side("B", "that may be slower or faster")],
    engines: options.Engines = None,
    workloads: options.Workloads = None,
    interpreters: options.Interpreters = None,
    within: Annotated[
        Optional[float],
        typer.Option(min=1e-6, max=0.99, metavar="SHARE", help="Difference that does not matter. Default: 0.02."),
    ] = None,
    budget: options.Budget = None,
    wait: options.Wait = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Say which of two commits, two interpreters or two runs is faster; the first two are measured in turns.

    Stops when every cell has a verdict, or after --budget.
    """
    chosen = options.selection(engines, workloads, interpreters)
    if runs := _runs(a, b):
        options.refuse_useless(context, a, "engines", "workloads", "interpreters", "budget", "wait")
        _compare_runs(*runs, within or WITHIN, as_json=as_json)
        return
    both = sides(a, b, chosen.interpreters)
    if both["head"].sha and facts.commit(ROOT).endswith("+"):
        complain("this checkout has uncommitted changes, which are in neither commit")
    cells = tuple(
        dict.fromkeys(
            Cell(engine=all_engines.load(engine).name, interpreter=host, workload=all_workloads.load(workload).name)
            for workload in chosen.workloads or WORKLOADS
            for host in both["base"].hosts
            for engine in chosen.engines or ENGINES
        )
    )
    strict = [cell.engine for cell in cells if all_engines.load(cell.engine).strict]
    seed = secrets.randbelow(2**32)
    fetch_data(dict.fromkeys(cell.workload for cell in cells))
    interrupted = False
    with contextlib.ExitStack() as stack:
        stack.enter_context(alone(wait=wait))
        with out.status("making environments"):
            both = stack.enter_context(placed(both))
        comparison = Comparison(both, cells, strict, within or WITHIN, seed)
        folder = inside(RUNS, f"{datetime.now(UTC):%Y-%m-%dT%H%M%S}-compare")
        folder.mkdir(parents=True)
        mark(folder, folder.name)
        seconds = budget or BUDGET_SECONDS
        most = f"{units.count(len(cells), 'cell')}, at most {display.seconds_text(seconds)}"
        say(f"{both['head'].name} against {both['base'].name}, seed {seed}: {most}")
        try:
            for number in comparison.measure(time.monotonic() + seconds):
                compared = [one for one in comparison.verdicts() if one.figure != RESULT]
                known = sum(one.word != "unsure" for one in compared)
                say(f"[{known}/{len(compared)} known] block {number + 1}")
        except KeyboardInterrupt:  # print the verdicts so far
            interrupted = True
    old, new = (comparison.sides[side] for side in SIDES)
    notes = [in_turns(comparison.family)]
    table = verdict_table(f"{new} against {old}", (old.name, new.name), comparison.verdicts(), notes)
    conclude(table, folder / "compare.md", as_json=as_json, interrupted=interrupted)


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
    from zoomgrad.reports import gate  # late: pandas takes a second, which would delay the error about a missing run

    limits = Limits(slowdown=within, compile_growth=max(within, COMPILE_WITHIN), reruns=0)
    compared = gate.verdicts(new, old, limits, tolerant=False)
    sides = old.run.id, new.run.id
    conclude(of_runs(f"{sides[1]} against {sides[0]}", sides, new.run, old.run, compared), None, as_json=as_json)
