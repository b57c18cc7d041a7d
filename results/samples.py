"""Records -> samples for `results.stats`: the seconds that each cell's processes measured, by block."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from zoomgrad.results.record import BASELINE, Cell, Record
from zoomgrad.results.stats import intervals

Blocks = Mapping[int, Sequence[float]]
"""Samples of one cell: block -> values of one process, in seconds."""


def step_seconds(records: Iterable[Record]) -> Mapping[Cell, Blocks]:
    """Seconds per step of every measured record, scaled to the interpreter's median pace.

    Two cells are hardly ever measured in the same second, and the speed of a cloud machine varies between seconds; see
    `harness.worker.pace`. Unscaled if any of the interpreter's records lacks a pace. Records of a shared host are left
    out: blocks that ran at the same time disturbed each other, so their ratios say nothing.
    """
    measured = [record for record in _measured(records) if not record.shared_host]
    paces: dict[str, list[Sequence[float]]] = defaultdict(list)
    for record in measured:
        paces[record.cell.interpreter].append(record.pace_seconds)
    usual = {name: median(map(median, of_it)) for name, of_it in paces.items() if all(of_it)}
    return _by_cell((record, _steadied(record, usual.get(record.cell.interpreter))) for record in measured)


def step_seconds_as_measured(records: Iterable[Record]) -> Mapping[Cell, Blocks]:
    """Seconds per step of every measured record, unscaled, for comparisons with times that have no pace."""
    return _by_cell((record, record.step_seconds) for record in _measured(records))


def _measured(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record.status == "measured"]


def _by_cell(samples: Iterable[tuple[Record, Sequence[float]]]) -> Mapping[Cell, Blocks]:
    found: dict[Cell, dict[int, Sequence[float]]] = defaultdict(dict)
    for record, values in samples:
        found[record.cell][record.block] = values
    return found


def _steadied(record: Record, usual: float | None) -> Sequence[float]:
    if usual is None:
        return record.step_seconds
    return [seconds * usual / pace for seconds, pace in zip(record.step_seconds, record.pace_seconds, strict=True)]


TICK_SECONDS = 1e-9
"""Shortest time that counts. Clocks measure nothing shorter; treating less as 0 keeps ratios from overflowing."""


def compile_seconds(record: Record) -> float | None:
    """Compile time of one process: the sum of its phases. No other code computes it.

    0.0 if there was nothing to compile. None if the cell compiles (the record has tape rows) but this process only
    loaded an earlier block's object and recorded no phase.
    """
    if record.phases:
        seconds = sum(record.phases.values())
        return seconds if seconds >= TICK_SECONDS else 0.0
    return None if record.tape_rows else 0.0


def compiled_seconds(records: Iterable[Record]) -> Mapping[Cell, Blocks]:
    """Compile time of every measured record that compiled something, unscaled: one value per process."""
    seconds = ((record, compile_seconds(record)) for record in _measured(records))
    return _by_cell((record, (of_record,)) for record, of_record in seconds if of_record)


def baseline_of(cell: Cell) -> Cell:
    """The cell that the given cell's speedup is relative to: baseline on the same interpreter and workload."""
    return cell.model_copy(update={"engine": BASELINE})


def common(base: Blocks, other: Blocks) -> tuple[intervals.Samples, intervals.Samples]:
    """Samples of the blocks that both cells have. A disturbance of a whole block then cancels in their ratio."""
    blocks = sorted(base.keys() & other.keys())
    return [base[block] for block in blocks], [other[block] for block in blocks]
