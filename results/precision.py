"""Records -> the cells whose speedup intervals are wider than the requested precision, and their baselines.

A run that adds blocks until its intervals are narrow looks at them only a few times, and each look has an equal part of
the error. So all intervals of a cell together leave out its true speedup at most once in twenty times, and so does the
last one, however narrow it is by chance (Bonferroni). docs/proof.md shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from zoomgrad.results.record import Cell, Record, Run
from zoomgrad.results.samples import baseline_of, speedup, step_seconds
from zoomgrad.results.stats import intervals

MOST_BLOCKS = 60
"""Limit on blocks that a run adds for precision. A speedup that is still imprecise by then stays so on this machine."""


def looks(run: Run) -> list[int]:
    """Numbers of blocks after which the run looks at its intervals: each time twice as many, and the limit."""
    found = [max(run.blocks, intervals.MIN_PROCESSES)]
    while run.precision and found[-1] < MOST_BLOCKS:
        found.append(min(2 * found[-1], MOST_BLOCKS))
    return found


def error(run: Run) -> float:
    """Error of each interval of a speedup, so that the last one keeps the error of an ordinary interval."""
    return intervals.ERROR / len(looks(run))


def imprecise(records: Iterable[Record], precision: float, at: Sequence[int]) -> list[Cell]:
    """Cells that need more blocks, and their baselines.

    precision: largest allowed relative half-width of a speedup's interval, 0.05 for ±5 %. A cell without a result or
    without a baseline has no speedup, so it is left out.
    at: all `looks` of the run. Only blocks before the last one that was reached count.
    """
    records = list(records)
    there = max((record.block for record in records), default=-1) + 1
    reached = [look for look in at if look <= there]
    # A cell that failed once is not tried again.
    given_up = {record.cell for record in records if record.status not in ("measured", "skipped")}
    records = [record for record in records if record.block < (reached[-1] if reached else there)]
    measured = {cell: blocks for cell, blocks in step_seconds(records).items() if cell not in given_up}
    wanted: dict[Cell, None] = {}
    for cell, blocks in measured.items():
        base = baseline_of(cell)
        if cell == base or base not in measured:
            continue
        # Without an interval, the width is NaN, and not within the precision.
        if not speedup(measured[base], blocks, intervals.ERROR / len(at)).relative_width / 2 <= precision:
            wanted |= dict.fromkeys((cell, base))
    return list(wanted)
