"""Records -> the cells whose speedup is not known as precisely as asked."""

from __future__ import annotations

from collections.abc import Iterable

from results.record import Cell, Record
from results.samples import Blocks, baseline_of, common, step_seconds
from results.stats import intervals


def imprecise(records: Iterable[Record], precision: float) -> list[Cell]:
    """Cells that need more blocks, each with the baseline it is compared with.

    precision: the relative half-width that a speedup's interval may have, 0.05 for ±5 %. A cell without a result or
    without a baseline has no speedup to wait for.
    """
    records = list(records)
    # What failed once is not tried again.
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
