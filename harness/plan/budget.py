"""Cells and a time -> the cells that fit into it.

A baseline is worth its time only to the cells that are compared with it, so each of them bears a share of it. The
dearest go first; a baseline goes with the last of its cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from results.record import BASELINE, Cell


def fit(seconds: Mapping[Cell, float], budget_seconds: float) -> Sequence[Cell]:
    """The cells that fit, in their order.

    seconds: what each cell takes, all its blocks.
    """
    kept = list(seconds)
    compared = _places(kept)
    while kept and sum(seconds[cell] for cell in kept) > budget_seconds:
        prices = _prices(kept, seconds)
        kept.remove(max(prices, key=prices.__getitem__))
        useful = _places(kept)
        # A baseline that nothing was compared with from the start was asked for by itself.
        kept = [c for c in kept if c.engine != BASELINE or _place(c) in useful or _place(c) not in compared]
    return kept


def _prices(kept: Sequence[Cell], seconds: Mapping[Cell, float]) -> dict[Cell, float]:
    """What each cell that may go takes, with its share of its baseline."""
    sharing = Counter(_place(cell) for cell in kept if cell.engine != BASELINE)
    baselines = {_place(cell): seconds[cell] for cell in kept if cell.engine == BASELINE}
    prices = {}
    for cell in kept:
        place = _place(cell)
        if cell.engine != BASELINE:
            prices[cell] = seconds[cell] + baselines.get(place, 0.0) / sharing[place]
        elif not sharing[place]:
            prices[cell] = seconds[cell]
    return prices


def _places(cells: Collection[Cell]) -> set[tuple[str, str]]:
    return {_place(cell) for cell in cells if cell.engine != BASELINE}


def _place(cell: Cell) -> tuple[str, str]:
    """Where a baseline serves."""
    return cell.interpreter, cell.workload
