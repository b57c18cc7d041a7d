"""Run -> units of work: one block of one interpreter, which a host measures as a whole.

A ratio is valid only within a block. So a unit has an interpreter's cells with their baseline, and the baseline on the
reference CPython, in shuffled order. Its number is the block of its records. Round 0 of a run on two interpreters has
the units 0 and 1, round 1 has 2 and 3.
"""

from __future__ import annotations

import random

from zoomgrad.harness.plan.planning import Plan
from zoomgrad.results.fields import Blocks, Name
from zoomgrad.results.record import BASELINE, Cell, Model, Run


class Unit(Model):
    """Cells that one host measures in this order."""

    number: Blocks
    round: Blocks
    interpreter: Name
    cells: tuple[Cell, ...]


def units(run: Run) -> list[Unit]:
    """All units of a run, by number."""
    return [unit for turn in range(run.blocks) for unit in _of_round(run, turn)]


def _of_round(run: Run, turn: int) -> list[Unit]:
    interpreters = list(dict.fromkeys(cell.interpreter for cell in run.cells))
    found = []
    for index, interpreter in enumerate(interpreters):
        number = turn * len(interpreters) + index
        own = [cell for cell in run.cells if cell.interpreter == interpreter]
        workloads = {cell.workload for cell in own}
        bases = [
            cell
            for cell in run.cells
            if (cell.engine, cell.interpreter) == (BASELINE, run.reference_interpreter) and cell.workload in workloads
        ]
        cells = list(dict.fromkeys([*own, *bases]))
        shuffled = random.Random(f"{run.seed} {number}").sample(cells, len(cells))
        found.append(Unit(number=number, round=turn, interpreter=interpreter, cells=tuple(shuffled)))
    return found


def unit_seconds(plan: Plan, unit: Unit) -> float:
    """Estimated time of a unit on a host that has done none before: every first compilation is in it."""
    return sum(plan.block_seconds(cell, 0 if unit.round == 0 else unit.number) for cell in unit.cells)
