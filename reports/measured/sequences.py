"""Records and table -> curves within the processes: losses over time, and run sequences of values.

The table has one row a cell, with medians. Here a cell has one row for each point of its curve.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any

import pandas as pd

from reports.measured.outcome import IDENTICAL, MEASURED, UNSTEADY
from reports.measured.table import KEYS, Row, each, in_order, measured, smallest
from results import units
from results.record import Cell, Record
from results.stats.intervals import median_of_processes
from results.stats.steady import MIN_VALUES, classify, of_processes

POINTS_A_MEAN = 50
"""Least number of recorded losses in a mean: the loss of a single sample is often close to 0 or very large."""
_STRETCH = 1.5
"""Least factor from a mean's first step to its last, so a long training gets about as many means as a short one."""
HALF = 0.5
"""Engines race to this share of their first mean loss."""

Points = Sequence[tuple[int, float]]
"""Steps in rising order, with their losses."""


def losses(table: pd.DataFrame, records: Iterable[Record]) -> pd.DataFrame:
    """Return the loss curves of one workload, for one cell of each engine: the reference CPython's, else the fastest.

    `seconds`: compile time and all steps so far, from medians. `loss`: the mean of `points` recorded losses around
    `step`. Strict engines whose proofs hold have identical losses, so they share the points that any of them recorded,
    each up to its own last step. A fast engine thins its points and alone would miss the steps in which the loss falls.
    """
    blocks = _blocks(records)
    results = list(each(measured(table)))
    same_training = {_cell(row) for row in results if row.promise == IDENTICAL and row.bits == "identical"}
    shared = _merged(block for cell in same_training for block in blocks[cell])
    made: list[Row] = []
    for row in _one_an_engine(table):
        cell = _cell(row)
        own = _merged(blocks[cell])
        points = [point for point in shared if point[0] <= own[-1][0]] if own and cell in same_training else own
        for step, loss, count in _means(points):
            # The loss of a step is known once the step is done, hence the + 1.
            seconds = row.compile_seconds + (step + 1) * row.step_seconds
            made.append({**_keys(row), "step": step, "seconds": seconds, "loss": loss, "points": count})
    return _like(table, made, ("step", "seconds", "loss", "points"))


def first_to_halve(curves: pd.DataFrame) -> Any:
    """Return the row of `losses` that is first to reach half of its curve's first loss; None if none gets there."""
    halved: list[Any] = []
    for engine in in_order(curves, "engine"):
        curve = curves[curves["engine"] == engine]
        goal = HALF * curve["loss"].iloc[0]
        # Half of a negative loss would be larger than the loss.
        halved += list(each(curve[curve["loss"] <= goal].head(1))) if goal > 0 else []
    return min(halved, key=lambda row: row.seconds, default=None)


def values(table: pd.DataFrame, records: Iterable[Record]) -> pd.DataFrame:
    """Return the run sequences of one workload: each cell's warm-up and timed values, in the order of their `number`.

    `relative`: the value divided by the cell's step time, median over processes. `warm_up`: whether the step time
    excludes the value. `steady`: the cell's kind from `results.stats.steady`. `steady_from`: the number from which the
    cell is steady, NaN if it never is. Only one interpreter without a just-in-time compiler is shown, the reference
    CPython if it was measured: it shows the cost of starting a process. Cells with a single value are left out.
    """
    blocks = _blocks(records)
    # A cell that never settled has no time to show, but its sequence shows why.
    rows = table[table["status"].isin((MEASURED, UNSTEADY))]
    plain = [name for name in in_order(rows, "interpreter") if name.startswith("cpython")]
    at_home = in_order(rows[rows["on_reference"].astype(bool)], "interpreter")
    shown = {*in_order(rows, "interpreter")} - {*plain} | {*(at_home or plain)[:1]}
    made: list[Row] = []
    for row in each(rows[rows["interpreter"].isin(shown)]):
        of_cell = blocks[_cell(row)]
        # A process with slow steps takes fewer values; only the longest sequences are compared.
        shape = max(_shape(block) for block in of_cell)
        processes = [block.warmup_step_seconds + block.step_seconds for block in of_cell if _shape(block) == shape]
        steady = of_processes([classify(process) for process in processes])
        step = median_of_processes([block.step_seconds for block in of_cell])
        of_all = {"steady": steady.kind, "steady_from": math.nan if steady.start is None else steady.start + 1}
        for index, of_value in enumerate(zip(*processes, strict=True) if sum(shape) > 1 else ()):
            relative = median(of_value) / step
            of_one = {"number": index + 1, "relative": relative, "warm_up": index < shape[0]}
            made.append({**_keys(row), **of_one, **of_all})
    return _like(table, made, ("number", "relative", "warm_up", "steady", "steady_from"))


def settling(sequences: pd.DataFrame) -> str:
    """Say how many cells of `values` reached a steady state, and which never did; empty if there is no cell."""
    firsts = sequences[sequences["number"] == 1]
    long = firsts[firsts["steady"] != "too short"]
    never = [f"{row.engine} on {row.interpreter} ({row.steady})" for row in each(long[long["steady_from"].isna()])]
    found = []
    if len(long):
        found.append(
            f"Of {units.count(len(long), 'cell')} with {MIN_VALUES} values or more, {len(long) - len(never)} settled."
        )
    if never:
        found.append(f"Not steady in every process: {', '.join(never)}.")
    if short := len(firsts) - len(long):
        found.append(f"{units.count(short, 'cell')} with fewer than {MIN_VALUES} values: too short to tell.")
    return " ".join(found)


def _blocks(records: Iterable[Record]) -> Mapping[Cell, list[Record]]:
    found: dict[Cell, list[Record]] = defaultdict(list)
    for record in records:
        if record.status == MEASURED:
            found[record.cell].append(record)
    return found


def _cell(row: Any) -> Cell:
    return Cell(**_keys(row))


def _keys(row: Any) -> dict[str, str]:
    return {key: str(getattr(row, key)) for key in KEYS}


def _like(table: pd.DataFrame, made: list[Row], columns: Sequence[str]) -> pd.DataFrame:
    """Make a table of the rows whose keys have the categories of `table`, so they sort and are coloured the same."""
    return pd.DataFrame(made, columns=[*KEYS, *columns]).astype({key: table[key].dtype for key in KEYS})


def _one_an_engine(table: pd.DataFrame) -> Iterator[Any]:
    rows = measured(table)
    rows = rows[rows["compile_seconds"].notna()]
    for engine in in_order(rows, "engine"):
        of_engine = rows[rows["engine"] == engine]
        at_home = of_engine[of_engine["on_reference"].astype(bool)]
        yield smallest(of_engine if at_home.empty else at_home, "step_seconds")


def _merged(blocks: Iterable[Record]) -> Points:
    """Return the mean loss of each recorded step, because all blocks repeat the same training."""
    found: dict[int, list[float]] = defaultdict(list)
    for block in blocks:
        for point in block.losses:
            found[point.step].append(point.loss)
    return [(step, _mean(found[step])) for step in sorted(found)]


def _means(points: Points) -> Iterator[tuple[float, float, int]]:
    """Yield means of successive losses: step, loss and number of points. Too few at the end join the mean before."""
    heaps: list[list[tuple[int, float]]] = []
    for point in points:
        if not heaps or (len(heaps[-1]) >= POINTS_A_MEAN and point[0] > _STRETCH * heaps[-1][0][0]):
            heaps.append([])
        heaps[-1].append(point)
    if len(heaps) > 1 and len(heaps[-1]) < POINTS_A_MEAN:
        heaps[-2:] = [heaps[-2] + heaps[-1]]
    for heap in heaps:
        yield fmean(step for step, _ in heap), _mean([loss for _, loss in heap]), len(heap)


def _shape(record: Record) -> tuple[int, int]:
    return len(record.warmup_step_seconds), len(record.step_seconds)


def _mean(values: Sequence[float]) -> float:
    """Return the mean, or NaN if it is not finite: `fmean` raises for inf and -inf, and an axis has no place for it."""
    total = sum(values)
    return total / len(values) if math.isfinite(total) else math.nan
