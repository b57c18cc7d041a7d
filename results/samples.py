"""Records -> samples: what each cell's processes measured, by block, for statistics over several cells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from results import stats
from results.record import BASELINE, Cell, Record

Blocks = Mapping[int, Sequence[float]]
"""Of one cell, by block: the values of one process, in seconds."""


def step_seconds(records: Iterable[Record]) -> Mapping[Cell, Blocks]:
    """Seconds a step of every measured record, as if the machine had always kept its interpreter's median pace.

    What is compared was hardly ever measured in the same second, and a cloud machine has faster and slower ones; see
    `harness.worker.pace`. As measured where an interpreter's records have no pace.
    """
    measured = [record for record in records if record.status == "measured"]
    paces: dict[str, list[Sequence[float]]] = defaultdict(list)
    for record in measured:
        paces[record.cell.interpreter].append(record.pace_seconds)
    usual = {name: median(map(median, of_it)) for name, of_it in paces.items() if all(of_it)}
    found: dict[Cell, dict[int, Sequence[float]]] = defaultdict(dict)
    for record in measured:
        found[record.cell][record.block] = _steadied(record, usual.get(record.cell.interpreter))
    return found


def _steadied(record: Record, usual: float | None) -> Sequence[float]:
    if usual is None:
        return record.step_seconds
    return [seconds * usual / pace for seconds, pace in zip(record.step_seconds, record.pace_seconds, strict=True)]


def compile_seconds(records: Iterable[Record]) -> Mapping[Cell, Blocks]:
    """Compile time of every measured record that has one: a process compiles once. All phases together."""
    found: dict[Cell, dict[int, Sequence[float]]] = defaultdict(dict)
    for record in records:
        if record.status == "measured" and sum(record.phases.values()) > 0:
            found[record.cell][record.block] = (sum(record.phases.values()),)
    return found


def baseline_of(cell: Cell) -> Cell:
    """What the cell's speedup is over: the baseline on the same interpreter and workload."""
    return cell.model_copy(update={"engine": BASELINE})


def common(base: Blocks, other: Blocks) -> tuple[stats.Samples, stats.Samples]:
    """The samples of the blocks that both have: what slowed a whole block then cancels in their ratio."""
    blocks = sorted(base.keys() & other.keys())
    return [base[block] for block in blocks], [other[block] for block in blocks]
