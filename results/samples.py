"""Records -> records at the run's median pace -> samples for `results.stats`: seconds by cell and block.

Everything that shows or compares a time starts here. Records on disk and pyperf's files keep the times as measured.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from types import MappingProxyType

from zoomgrad.results.record import BASELINE, Cell, Figures, Record
from zoomgrad.results.stats import intervals

Blocks = Mapping[int, Sequence[float]]
"""Samples of one cell: block -> values of one process, in seconds."""


CORRECTED = (
    "Times are corrected to the run's median pace, so a speedup is the quotient of the two times. The records and "
    "pyperf's files hold the times as measured."
)
"""The caption of everything that shows times."""


def at_median_pace(records: Iterable[Record]) -> list[Record]:
    """Correct all times of the records to the median pace of their interpreter, on a fleet over all hosts.

    Two cells are hardly ever measured in the same second, and the speed of a cloud machine varies between seconds; see
    `harness.worker.measure.pace`. All hosts of a fleet are of one type, so their times are
    comparable at one pace. A timed value is divided by the pace around it, other times of the process by the median of
    these paces. Correcting twice is the same as once.
    """
    records = list(records)
    paces: dict[str, list[float]] = defaultdict(list)
    for record in _measured(records):
        paces[record.cell.interpreter].append(median(record.pace_seconds))
    usual = {key: median(of_processes) for key, of_processes in paces.items()}
    return [
        _corrected(record, usual[record.cell.interpreter]) if record.status == "measured" else record
        for record in records
    ]


_TIMES = tuple(name for name, field in Figures.model_fields.items() if field.annotation is float and "_seconds" in name)
"""Figures that are times of the process."""


def _corrected(record: Record, usual: float) -> Record:
    timed = zip(record.step_seconds, record.pace_seconds, strict=True)
    factor = usual / median(record.pace_seconds)
    return record.model_copy(
        update={
            "step_seconds": tuple(seconds * (usual / pace) for seconds, pace in timed),
            "warmup_step_seconds": tuple(seconds * factor for seconds in record.warmup_step_seconds),
            "phases": {name: seconds * factor for name, seconds in record.phases.items()},
            **{name: getattr(record, name) * factor for name in _TIMES},
            "pace_seconds": (usual,) * len(record.pace_seconds),
        }
    )


def step_seconds(records: Iterable[Record]) -> Mapping[Cell, Blocks]:
    """Seconds per step of every measured record at the median pace."""
    return _by_cell((record, record.step_seconds) for record in _measured(at_median_pace(records)))


def _measured(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record.status == "measured"]


def _by_cell(samples: Iterable[tuple[Record, Sequence[float]]]) -> Mapping[Cell, Blocks]:
    by_cell: dict[Cell, dict[int, Sequence[float]]] = defaultdict(dict)
    for record, values in samples:
        by_cell[record.cell][record.block] = values
    return by_cell


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
    """Return the cell that a speedup is relative to: baseline on the same interpreter and workload."""
    return cell.model_copy(update={"engine": BASELINE})


def common(base: Blocks, other: Blocks) -> tuple[intervals.Samples, intervals.Samples]:
    """Samples of the blocks that both cells have. A disturbance of a whole block then cancels in their ratio."""
    blocks = sorted(base.keys() & other.keys())
    return [base[block] for block in blocks], [other[block] for block in blocks]


def speedup(base: Blocks, engine: Blocks, hosts: Mapping[int, str] = MappingProxyType({})) -> intervals.Interval:
    """Quotient of two cells' median times, base over engine, with the interval of the ratios within common blocks.

    Both medians are over all blocks of a cell, so the quotient of the times in a table is the speedup beside them.
    hosts: of a fleet, the host of each block. Bounds are NaN below 3 common blocks.
    """
    value = intervals.ratio_of_medians([*base.values()], [*engine.values()])
    try:
        return intervals.speedup(*common(base, engine), value, hosts_of(base.keys() & engine.keys(), hosts))
    except intervals.TooFewProcesses:
        return intervals.Interval(value, math.nan, math.nan)


def hosts_of(blocks: Iterable[int], hosts: Mapping[int, str]) -> list[str]:
    """The hosts of these blocks in their order; empty for a run on one machine."""
    return [hosts[block] for block in sorted(blocks)] if hosts else []
