"""Carry out a duet: environments, worktrees, blocks, counted instructions; then its table."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

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
from results.duet.log import Log
from results.duet.verdicts import Finding
from results.files import inside, write_atomically
from results.printable import printable


@dataclass(frozen=True)
class Performed:
    """A duet's result, the folder of its files, and whether the user ended it early."""

    result: Result
    folder: Path
    interrupted: bool


def perform(duet: Duet, chosen: Sequence[Interpreter], begun: Log | None = None, *, wait: bool) -> Performed:
    """Carry out a duet on these interpreters. Raises Unreadable if no cell could be measured.

    begun: where a part of it was measured before.
    """
    fetch_data(dict.fromkeys(cell.workload for cell in duet.cells))
    pythons = {}
    for interpreter in chosen:
        with out.status(f"making the environment for {interpreter.name}"):
            pythons[interpreter.name] = environments.environment(interpreter), interpreter.warms_up
    os.environ[RUN] = duet.id
    with alone(wait=wait):
        start = time.monotonic()
        with commits.worktrees({"base": duet.base, "head": duet.head}) as places:
            sides = {side: compare.Place(checkout, pythons) for side, checkout in places.items()}
            if begun:
                log, before = begun, begun.result()
                log.cut()
            else:
                log, duet = Log.create(duet)
                before = Result(duet=duet)
            out.print(_introduction(duet, before), markup=False, soft_wrap=True)
            comparison = compare.Comparison(
                duet,
                sides,
                _tell,
                log.append,
                until=start + duet.budget_seconds - before.spent_seconds,
                blocks=[*before.blocks],
                absences=[*before.absences],
            )
            counts = [*before.counts]
            interrupted = False
            try:
                # The first round finds out what fails. Counting before the others leaves them the rest of the time.
                comparison.measure(only_first_round=True)
                compare.refuse_hopeless(comparison)
                if duet.instructions:
                    by_name = {interpreter.name: interpreter for interpreter in chosen}
                    _count(comparison, by_name, counts, log)
                comparison.measure()
            except KeyboardInterrupt:  # what is known so far is worth printing
                interrupted = True
    result = Result(
        duet=duet, blocks=tuple(comparison.blocks), absences=tuple(comparison.absences), counts=tuple(counts)
    )
    return Performed(result, log.folder, interrupted)


def _count(
    comparison: compare.Comparison, interpreters: Mapping[str, Interpreter], counts: list[Counts], log: Log
) -> None:
    """Count the instructions of all cells that are not counted yet, as long as there is time."""
    done = {absence.cell for absence in comparison.absences} | {one.cell for one in counts}
    for cell in comparison.duet.cells:
        start = time.monotonic()
        if cell not in done and start < comparison.until:
            out.print(f"counting instructions of {cell}", markup=False)
            found = counted(cell, comparison.places, interpreters[cell.interpreter])
            counts.append(found.model_copy(update={"seconds": time.monotonic() - start}))
            log.append(counts[-1])


def _introduction(duet: Duet, before: Result) -> str:
    left = max(0.0, duet.budget_seconds - before.spent_seconds)
    cells = f"{units.count(len(duet.cells), 'cell')}, at most {display.seconds_text(left)}"
    goes_on = f", after {units.count(len(before.blocks), 'block')} from before" if before.blocks else ""
    return f"{duet.id}: {duet.base.name} against {duet.head.name}: {cells}{goes_on}"


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
        say_next(
            f"Interrupted. All blocks so far are on disk. Resume with: zoomgrad ab --resume {short(performed.folder)}"
        )
        raise typer.Exit(INTERRUPTED)
    if table.failed:
        raise typer.Exit(FAILED)


def _tell(line: str, found: Sequence[Finding]) -> None:
    """Print one line for each block: what is known of it so far."""
    known = sum(one.word != "unknown" for one in found)
    out.print(printable(f"[{known}/{len(found)} known] {line}"), markup=False, soft_wrap=True)
