"""Run and records -> the cells whose speedup is not known as precisely as asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from results import stats
from results.record import BASELINE, Cell, Record

StepSeconds = Mapping[Cell, Sequence[Sequence[float]]]
"""Of each measured cell the seconds a step, one inner sequence a process."""


def step_seconds(records: Iterable[Record]) -> StepSeconds:
    """What each cell's processes measured, in the order of the records."""
    found: dict[Cell, list[Sequence[float]]] = defaultdict(list)
    for record in records:
        if record.status == "measured":
            found[record.cell].append(record.step_seconds)
    return found


def baseline_of(cell: Cell) -> Cell:
    """What the cell's speedup is over: the baseline on the same interpreter and workload."""
    return cell.model_copy(update={"engine": BASELINE})


def imprecise(records: Iterable[Record], precision: float) -> list[Cell]:
    """Cells that need more blocks, each with the baseline it is compared with.

    precision: the relative half-width that a speedup's interval may have, 0.05 for ±5 %. A cell without a result or
    without a baseline has no speedup to wait for.
    """
    measured = step_seconds(records)
    wanted: dict[Cell, None] = {}
    for cell, samples in measured.items():
        base = baseline_of(cell)
        if cell != base and base in measured and _half_width(measured[base], samples) > precision:
            wanted |= dict.fromkeys((cell, base))
    return list(wanted)


def _half_width(base: Sequence[Sequence[float]], engine: Sequence[Sequence[float]]) -> float:
    try:
        return stats.speedup(base, engine).relative_width / 2
    except stats.TooFewProcesses:
        return float("inf")
