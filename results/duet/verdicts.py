"""Blocks of a duet -> what they show about each cell: faster, slower, the same, or not known yet.

The ratios are of HEAD's seconds over BASE's, so more than 1 is slower. All bounds of a duet hold together, with the
probability of an error shared equally among them (Bonferroni), at all times (`results.stats.sequential`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Literal

from results.duet.blocks import Block, Duet, Figure
from results.record import Cell
from results.stats import sequential
from results.stats.intervals import Interval

COMPILE_WITHIN = 0.05
"""Difference of compile times that does not matter: their noise floor. Compilers start processes and write files, whose
times vary more than a step's."""

Word = Literal["slower", "faster", "same", "unknown"]

MOST_FORESEEN_BLOCKS = sequential.MOST_BLOCKS


@dataclass(frozen=True)
class Finding:
    """One figure of one cell, or the geometric mean of a figure over cells."""

    subject: str
    """A cell's key, or `geometric mean of 4 cells`."""
    figure: Figure
    word: Word
    ratio: Interval
    """HEAD over BASE. Bounds are 0 and infinite as long as there are too few blocks."""
    blocks: int
    seconds_to_know: float = 0.0
    """About how much longer it would take to know, if further blocks are like these. Infinite: too long to foresee."""
    cell: Cell | None = None


def findings(duet: Duet, blocks: Iterable[Block], absent: Iterable[Cell] = ()) -> list[Finding]:
    """Return what the blocks show: one finding for each cell and figure that was measured, then for their means."""
    by_cell: dict[Cell, dict[int, Block]] = {cell: {} for cell in duet.cells}
    for block in blocks:
        by_cell[block.cell][block.block] = block
    left_out = set(absent)
    error = duet.error / family(duet)
    found = []
    for figure in duet.figures:
        logs = {
            cell: {number: log for number, block in of_cell.items() if (log := block.log_ratio(figure)) is not None}
            for cell, of_cell in by_cell.items()
            if cell not in left_out
        }
        seconds = {
            cell: fmean(block.seconds for block in of_cell.values()) for cell, of_cell in by_cell.items() if of_cell
        }
        known = {cell: of_cell for cell, of_cell in logs.items() if of_cell}
        found += [
            _finding(cell.key, figure, list(of_cell.values()), within(duet, figure), error, seconds[cell], cell)
            for cell, of_cell in known.items()
        ]
        if len(known) > 1:
            together = set.intersection(*(set(of_cell) for of_cell in known.values()))
            means = [fmean(of_cell[number] for of_cell in known.values()) for number in sorted(together)]
            total = sum(seconds[cell] for cell in known)
            if means:
                subject = f"geometric mean of {len(known)} cells"
                found.append(_finding(subject, figure, means, within(duet, figure), error, total, None))
    return found


def within(duet: Duet, figure: Figure) -> float:
    """Difference of that figure that does not matter, as a share."""
    return duet.within if figure == "step" else max(duet.within, COMPILE_WITHIN)


def family(duet: Duet) -> int:
    """Number of statements that a duet can make, which share its probability of an error."""
    return len(duet.figures) * (len(duet.cells) + (len(duet.cells) > 1))


def _finding(
    subject: str, figure: Figure, logs: Sequence[float], limit: float, error: float, seconds: float, cell: Cell | None
) -> Finding:
    low, high = sequential.bounds(logs, error)
    word = _word(low, high, limit)
    left = 0.0 if word != "unknown" else _blocks_to_know(logs, limit, error) * seconds
    ratio = Interval(math.exp(median(logs)), math.exp(low), math.exp(high))
    return Finding(subject, figure, word, ratio, len(logs), left, cell)


def _word(low: float, high: float, limit: float) -> Word:
    """Return the verdict. A difference that is certainly smaller than the limit is the same, even if it is certain."""
    if high < math.log1p(limit) and low > -math.log1p(limit):
        return "same"
    return "slower" if low > 0 else "faster" if high < 0 else "unknown"


def _blocks_to_know(logs: Sequence[float], limit: float, error: float) -> float:
    """Number of further blocks until there would be a verdict, if they are spread like these; infinite if too many."""

    def enough(count: int) -> bool:
        return _word(*sequential.foreseen(logs, count, error), limit) != "unknown"

    if not enough(MOST_FORESEEN_BLOCKS):
        return math.inf
    low, high = len(logs), MOST_FORESEEN_BLOCKS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high - len(logs)


def differing_bits(blocks: Iterable[Block]) -> list[Cell]:
    """Cells whose two commits compute different losses or parameters in a block."""
    return list(dict.fromkeys(block.cell for block in blocks if block.base.bits != block.head.bits))


def undecided(found: Iterable[Finding]) -> list[Cell]:
    """Cells that need more blocks. All of them, if only a mean is not known yet."""
    listed = list(found)
    cells = [one.cell for one in listed if one.cell and one.word == "unknown"]
    if cells or all(one.word != "unknown" for one in listed):
        return list(dict.fromkeys(cells))
    return list(dict.fromkeys(one.cell for one in listed if one.cell))
