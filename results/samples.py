"""Records -> records at the run's median pace -> samples for `results.stats`: seconds by cell and block.

Everything that shows or compares a time starts here. Records on disk and pyperf's files keep the times as measured.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median

from zoomgrad.results.record import BASELINE, Cell, Figures, Record
from zoomgrad.results.stats import clusters, intervals

Blocks = Mapping[int, Sequence[float]]
"""Samples of one cell: block -> values of one process, in seconds."""


CORRECTED = (
    "Times are corrected to the run's median pace, so a speedup is the quotient of the two times. The records and "
    "pyperf's files hold the times as measured."
)
"""The caption of everything that shows times."""


def at_median_pace(records: Iterable[Record]) -> list[Record]:
    """Correct all times of the records to the median pace of their interpreter, on a fleet per host.

    Two cells are hardly ever measured in the same second, and the speed of a cloud machine varies between seconds; see
    `harness.worker.pace`. A timed value is divided by the pace around it, other times of the process by the median of
    these paces. Correcting twice is the same as once.
    """
    records = list(records)
    paces: dict[tuple[str, str], list[float]] = defaultdict(list)
    for record in _measured(records):
        paces[record.cell.interpreter, record.host].append(median(record.pace_seconds))
    usual = {key: median(of_processes) for key, of_processes in paces.items()}
    return [
        _corrected(record, usual[record.cell.interpreter, record.host]) if record.status == "measured" else record
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
    """Seconds per step of every measured record at the median pace.

    Records of a shared host are left out: blocks that ran at the same time disturbed each other, so their ratios say
    nothing.
    """
    alone = (record for record in records if not record.shared_host)
    return _by_cell((record, record.step_seconds) for record in _measured(at_median_pace(alone)))


def _measured(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record.status == "measured"]


def _by_cell(samples: Iterable[tuple[Record, Sequence[float]]]) -> Mapping[Cell, Blocks]:
    found: dict[Cell, dict[int, Sequence[float]]] = defaultdict(dict)
    for record, values in samples:
        found[record.cell][record.block] = values
    return found


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


def speedup(base: Blocks, engine: Blocks, error: float = intervals.ERROR) -> intervals.Interval:
    """Quotient of two cells' median times, base over engine, with the interval of the ratios within common blocks.

    Both medians are over all blocks of a cell, so the quotient of the times in a table is the speedup beside them.
    Bounds are NaN below 3 common blocks.
    """
    value = intervals.ratio_of_medians([*base.values()], [*engine.values()])
    try:
        return intervals.speedup(*common(base, engine), error, value)
    except intervals.TooFewProcesses:
        return intervals.Interval(value, math.nan, math.nan)


def of_one_host(records: Sequence[Record], by_cell: Mapping[Cell, Sequence[Record]]) -> Sequence[Record]:
    """The cell's records from a single host, because seconds of different machines are never mixed.

    The host is the one that measured most of the cells of the interpreter, if it measured this cell.
    by_cell: all measured records.
    """
    if not any(record.host for record in records):
        return records
    interpreter = records[0].cell.interpreter
    counts = Counter(one.host for cell, found in by_cell.items() if cell.interpreter == interpreter for one in found)
    chosen = max({record.host for record in records}, key=lambda host: (counts[host], host))
    return [record for record in records if record.host == chosen]


def by_host(base: Blocks, other: Blocks, hosts: Mapping[int, str]) -> clusters.Logs:
    """Logarithms of the ratios within blocks, base over other, one sequence per host of a fleet."""
    found: dict[str, list[float]] = {}
    for block in sorted(base.keys() & other.keys()):
        (over,), (under,) = common({block: base[block]}, {block: other[block]})
        found.setdefault(hosts.get(block, ""), []).append(math.log(fmean(over) / fmean(under)))
    return list(found.values())


def of_hosts(logs: Sequence[Sequence[float]]) -> intervals.Interval:
    """A speedup with the interval for its machine type; with fewer than three hosts, for these hosts only.

    Bounds are NaN with too few blocks for either; everything is NaN without a block.
    """
    for interval in (clusters.of_type, clusters.of_fleet):
        try:
            return interval(logs)
        except intervals.TooFewProcesses:
            continue
    return intervals.Interval(math.exp(fmean(map(fmean, logs))) if logs else math.nan, math.nan, math.nan)
