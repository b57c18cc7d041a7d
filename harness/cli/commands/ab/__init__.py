"""`zoomgrad ab BASE HEAD`: two commits side by side on this machine. docs/ab.md describes it."""

from __future__ import annotations

import secrets
import sys
from datetime import UTC, datetime
from typing import Annotated, Optional

import typer

import engines
from harness import workloads
from harness.cli.app import app
from harness.cli.commands.ab.performing import conclude, perform
from harness.cli.options import Engines, Interpreters, Wait, Workloads, duration, names, share
from harness.duet import commits
from harness.machine import facts, interpreters, named
from results.duet.blocks import FIGURES, Duet
from results.record import Cell

ENGINES = ("tcc", "gcc-O1", "rerolled-gcc", "rerolled-clang")
WORKLOADS = ("digits",)


@app.command()
def ab(
    base: Annotated[str, typer.Argument(metavar="BASE", help="Commit to compare with: a branch, a tag or a hash.")],
    head: Annotated[str, typer.Argument(metavar="HEAD", help="Commit that may be slower or faster.")],
    engines_: Engines = None,
    workloads_: Workloads = None,
    interpreters_: Interpreters = None,
    within: Annotated[
        float, typer.Option(parser=share, metavar="SHARE", help="Difference that does not matter, e.g. 2%.")
    ] = "2%",  # type: ignore[assignment]  # Typer parses it
    budget: Annotated[
        float, typer.Option(parser=duration, metavar="TIME", help="Stop after this time even if a cell is not known.")
    ] = "10m",  # type: ignore[assignment]
    seed: Annotated[
        Optional[int], typer.Option(min=0, help="Seed of the order and the layouts. Default: random.")
    ] = None,
    compile_times: Annotated[bool, typer.Option(help="Also compare compile times.")] = True,
    instructions: Annotated[bool, typer.Option(help="Also count the instructions of a step.")] = True,
    wait: Wait = False,
) -> None:
    """Compare the speed of two commits, block by block in turns, until each cell has a verdict."""
    both = {"base": commits.commit(base), "head": commits.commit(head)}
    commits.refuse_changes(both)
    found, asked = named.asked(names(interpreters_), interpreters.discover())
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
        within=within,
        budget_seconds=budget,
        seed=secrets.randbelow(2**32) if seed is None else seed,
        python={interpreter.name: interpreter.full_version for interpreter in chosen},
        machine=facts.gather(),
    )
    conclude(perform(duet, chosen, instructions=instructions, wait=wait))
