"""`zoomgrad ab BASE HEAD`: two commits side by side on this machine. docs/ab.md describes it."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Optional

import typer

import engines
from harness import workloads
from harness.cli.app import app
from harness.cli.commands.ab.performing import conclude, perform
from harness.cli.options import Engines, Interpreters, Wait, Workloads, duration, names, share, some_name
from harness.duet import commits
from harness.machine import facts, interpreters, named
from harness.machine.interpreters import Interpreter
from results import comparability
from results.duet.blocks import FIGURES, Duet
from results.duet.log import Log
from results.files import Unreadable
from results.record import Cell

ENGINES = ("tcc", "gcc-O1", "rerolled-gcc", "rerolled-clang")
WORKLOADS = ("digits",)
WITHIN = 0.02
BUDGET_SECONDS = 570.0
"""Leaves half a minute of ten for starting, for the last block and for the table."""


@app.command()
def ab(
    base: Annotated[
        Optional[str],
        typer.Argument(metavar="BASE", help="Commit to compare with: a branch, a tag or a hash.", callback=some_name),
    ] = None,
    head: Annotated[
        Optional[str], typer.Argument(metavar="HEAD", help="Commit that may be slower or faster.", callback=some_name)
    ] = None,
    engines_: Engines = None,
    workloads_: Workloads = None,
    interpreters_: Interpreters = None,
    within: Annotated[
        Optional[float],
        typer.Option(parser=share, metavar="SHARE", help="Difference that does not matter. Default: 2%."),
    ] = None,
    budget: Annotated[
        Optional[float],
        typer.Option(
            parser=duration,
            metavar="TIME",
            help="Stop after this time even if a cell is not known. Default: 9m30s.",
        ),
    ] = None,
    seed: Annotated[
        Optional[int], typer.Option(min=0, help="Seed of the order and the layouts. Default: random.")
    ] = None,
    compile_times: Annotated[bool, typer.Option(help="Also compare compile times.")] = True,
    instructions: Annotated[bool, typer.Option(help="Also count the instructions of a step.")] = True,
    resume: Annotated[
        Optional[str],
        typer.Option(callback=some_name, help="Duet to go on with, perhaps with a larger --budget: its id or folder."),
    ] = None,
    wait: Wait = False,
) -> None:
    """Compare the speed of two commits, block by block in turns, until each cell has a verdict."""
    found, asked = named.asked(names(interpreters_), interpreters.discover())
    if resume:
        fixed = {
            "BASE": base,
            "HEAD": head,
            "--engines": engines_,
            "--workloads": workloads_,
            "--within": within,
            "--seed": seed,
        }
        switches = {"--no-compile-times": compile_times, "--no-instructions": instructions}
        given = [name for name, value in fixed.items() if value is not None]
        given += [name for name, value in switches.items() if not value]
        if given:
            raise Unreadable(
                f"{', '.join(given)}: a duet that goes on keeps its plan\n"
                "  Give only --budget, --wait and, for builds by path, --interpreters."
            )
        begun = Log.find(resume)
        duet, chosen = _resumed(begun.result().duet, found, budget)
        conclude(perform(duet, chosen, begun, wait=wait))
        return
    if base is None or head is None:
        raise Unreadable("two commits are compared: BASE and HEAD\n  For example: zoomgrad ab main HEAD")
    both = {"base": commits.commit(base), "head": commits.commit(head)}
    commits.refuse_changes(both)
    chosen = [interpreters.choose(name, found) for name in asked] or [interpreters.reference(found)]
    cells = dict.fromkeys(
        Cell(engine=engines.load(engine).name, interpreter=interpreter.name, workload=workloads.load(workload).name)
        for workload in names(workloads_) or WORKLOADS
        for interpreter in chosen
        for engine in names(engines_) or ENGINES
    )
    created_at = datetime.now(UTC)
    duet = Duet(
        id=f"{created_at:%Y-%m-%dT%H%M%S}-ab",
        created_at=created_at,
        command=("zoomgrad", *sys.argv[1:]),
        base=both["base"],
        head=both["head"],
        cells=tuple(cells),
        figures=FIGURES if compile_times else ("step",),
        within=WITHIN if within is None else within,
        budget_seconds=BUDGET_SECONDS if budget is None else budget,
        seed=secrets.randbelow(2**32) if seed is None else seed,
        instructions=instructions,
        python={interpreter.name: interpreter.full_version for interpreter in chosen},
        machine=facts.gather(),
    )
    conclude(perform(duet, chosen, wait=wait))


def _resumed(duet: Duet, found: Sequence[Interpreter], budget: Optional[float]) -> tuple[Duet, Sequence[Interpreter]]:
    """The duet with that budget, and its interpreters. Raises Unreadable if blocks here would be of another kind."""
    if moved := comparability.moved(duet.machine, facts.gather()):
        raise Unreadable(
            f"{duet.id}: this machine differs from the duet's ({moved})\n  Resume it there, or start a new duet here."
        )
    chosen = [interpreters.choose(name, found) for name in dict.fromkeys(cell.interpreter for cell in duet.cells)]
    for interpreter in chosen:
        version = duet.python.get(interpreter.name)
        if version != interpreter.full_version:
            raise Unreadable(
                f"{duet.id}: {interpreter.name} was {version} and is now {interpreter.full_version}\n"
                "  Start a new duet."
            )
    for cell in duet.cells:  # an unknown name is refused before anything is measured
        engines.load(cell.engine)
        workloads.load(cell.workload)
    for commit in (duet.base, duet.head):
        if commits.commit(commit.sha).sha != commit.sha:
            raise Unreadable(f"{duet.id}: {commit.sha} is not a commit's hash\n  Start a new duet.")
    return duet.model_copy(update={} if budget is None else {"budget_seconds": budget}), chosen
