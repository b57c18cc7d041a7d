"""Carry out a duet: environments, worktrees, blocks, counted instructions; then its table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from pydantic import BaseModel

import engines
from harness.cli import display
from harness.cli.app import FAILED, INTERRUPTED, out, say_next, short
from harness.cli.measuring import alone
from harness.cli.preparing import fetch_data
from harness.duet import commits, compare
from harness.duet.counting import counted
from harness.machine import environments
from harness.machine.interpreters import Interpreter
from harness.run.isolate import RUN
from reports.duet import HEADINGS, duet_table, markdown
from results import units
from results.duet.blocks import Counts, Duet, Result
from results.duet.verdicts import Finding
from results.files import inside, write_atomically
from results.printable import printable
from results.store import RUNS


@dataclass(frozen=True)
class Performed:
    """A duet's result, the folder of its files, and whether the user ended it early."""

    result: Result
    folder: Path
    interrupted: bool


def perform(duet: Duet, chosen: Sequence[Interpreter], *, instructions: bool, wait: bool) -> Performed:
    """Carry out a duet on these interpreters. Raises Unreadable if no cell could be measured."""
    fetch_data(dict.fromkeys(cell.workload for cell in duet.cells))
    pythons = {}
    for interpreter in chosen:
        with out.status(f"making the environment for {interpreter.name}"):
            pythons[interpreter.name] = environments.environment(interpreter), interpreter.has_jit
    os.environ[RUN] = duet.id
    with alone(wait=wait), commits.worktrees({"base": duet.base, "head": duet.head}) as places:
        sides = {side: compare.Place(checkout, pythons) for side, checkout in places.items()}
        folder = inside(RUNS, duet.id)
        folder.mkdir(parents=True)
        log = inside(folder, "blocks.jsonl")
        with log.open("w", encoding="utf-8") as file:

            def keep(one: BaseModel) -> None:
                file.write(f'{{"{type(one).__name__.lower()}":{one.model_dump_json()}}}\n')
                file.flush()

            keep(duet)
            cells_text = f"{units.count(len(duet.cells), 'cell')}, at most {display.seconds_text(duet.budget_seconds)}"
            out.print(f"{duet.base.name} against {duet.head.name}: {cells_text}", markup=False)
            comparison = compare.Comparison(duet, sides, _tell, keep)
            interrupted = False
            counts: list[Counts] = []
            try:
                comparison.measure()
                compare.refuse_hopeless(comparison)
                by_name = {interpreter.name: interpreter for interpreter in chosen}
                left_out = {absence.cell for absence in comparison.absences}
                for cell in duet.cells if instructions else ():
                    if cell not in left_out:
                        out.print(f"counting instructions of {cell}", markup=False)
                        counts.append(counted(cell, sides, by_name[cell.interpreter]))
                        keep(counts[-1])
            except KeyboardInterrupt:  # what is known so far is worth printing
                interrupted = True
    result = Result(
        duet=duet, blocks=tuple(comparison.blocks), absences=tuple(comparison.absences), counts=tuple(counts)
    )
    return Performed(result, folder, interrupted)


def conclude(performed: Performed) -> None:
    """Print the table and store it beside the blocks. Exits with 1 if HEAD is worse."""
    cells = performed.result.duet.cells
    table = duet_table(performed.result, [cell for cell in cells if engines.load(cell.engine).strict])
    summary = inside(performed.folder, "duet.md")
    write_atomically(summary, markdown(table))
    out.print("", display.table(table.title, HEADINGS, table.rows), "")
    out.print(*table.lines, sep="\n", markup=False, soft_wrap=True)
    say_next(f"{table.next} For details read {short(summary)}")
    if performed.interrupted:
        raise typer.Exit(INTERRUPTED)
    if table.failed:
        raise typer.Exit(FAILED)


def _tell(line: str, found: Sequence[Finding]) -> None:
    """Print one line for each block: what is known of it so far."""
    known = sum(one.word != "unknown" for one in found)
    out.print(printable(f"[{known}/{len(found)} known] {line}"), markup=False, soft_wrap=True)
