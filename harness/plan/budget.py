"""Cells and a time budget -> the cells that fit into it.

A baseline is only useful to the cells that are compared with it, so they share its cost equally. The most expensive
cells are dropped first, and a baseline is dropped with the last of its cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from results.record import BASELINE, Cell


def fit(seconds: Mapping[Cell, float], budget_seconds: float) -> Sequence[Cell]:
    """Cells that fit into the budget, in the given order.

    seconds: estimated time of each cell, over all its blocks.
    """
    kept = list(seconds)
    compared = _places(kept)
    while kept and sum(seconds[cell] for cell in kept) > budget_seconds:
        prices = _prices(kept, seconds)
        kept.remove(max(prices, key=prices.__getitem__))
        useful = _places(kept)
        # Keep a baseline that never had other cells: the user requested it by itself.
        kept = [c for c in kept if c.engine != BASELINE or _place(c) in useful or _place(c) not in compared]
    return kept


def _prices(kept: Sequence[Cell], seconds: Mapping[Cell, float]) -> dict[Cell, float]:
    """Seconds of each cell that may be dropped, including its share of its baseline."""
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
    """Interpreter and workload, which a cell shares with its baseline."""
    return cell.interpreter, cell.workload
