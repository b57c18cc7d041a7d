"""Records -> the cells whose speedup intervals are wider than the requested precision, and their baselines."""

from __future__ import annotations

from collections.abc import Iterable

from results.record import Cell, Record
from results.samples import Blocks, baseline_of, common, step_seconds
from results.stats import intervals


def imprecise(records: Iterable[Record], precision: float) -> list[Cell]:
    """Cells that need more blocks, and their baselines.

    precision: largest allowed relative half-width of a speedup's interval, 0.05 for ±5 %. A cell without a result or
    without a baseline has no speedup, so it is left out.
    """
    records = list(records)
    # A cell that failed once is not tried again.
    given_up = {record.cell for record in records if record.status not in ("measured", "skipped")}
    measured = {cell: blocks for cell, blocks in step_seconds(records).items() if cell not in given_up}
    wanted: dict[Cell, None] = {}
    for cell, blocks in measured.items():
        base = baseline_of(cell)
        if cell != base and base in measured and _half_width(measured[base], blocks) > precision:
            wanted |= dict.fromkeys((cell, base))
    return list(wanted)


def _half_width(base: Blocks, engine: Blocks) -> float:
    try:
        return intervals.speedup(*common(base, engine)).relative_width / 2
    except intervals.TooFewProcesses:
        return float("inf")
