"""Records and table -> run sequences: the values of a process, in order.

The table has one row a cell, with medians. Here a cell has one row for each point of its curve.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import pandas as pd

from zoomgrad.reports.measured.outcome import MEASURED, UNSTEADY
from zoomgrad.reports.measured.table import KEYS, Row, each, in_order
from zoomgrad.results import units
from zoomgrad.results.record import Cell, Record
from zoomgrad.results.stats.intervals import median_of_processes
from zoomgrad.results.stats.steady import MIN_VALUES, classify, of_processes


def values(table: pd.DataFrame, records: Iterable[Record]) -> pd.DataFrame:
    """Return the run sequences of one workload: each cell's warm-up and timed values, in the order of their `number`.

    `relative`: the value divided by the cell's step time, median over processes. `warm_up`: whether the step time
    excludes the value. `steady`: the cell's kind from `results.stats.steady`. `steady_from`: the number from which the
    cell is steady, NaN if it never is. Of the interpreters without a just-in-time compiler only one is included, the
    reference CPython if it was measured: one is enough to show the cost of starting a process. Cells with a single
    value are left out.
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
        of_all = {
            "bits": row.bits,
            "blocks": len(processes),
            "steady": steady.kind,
            "steady_from": math.nan if steady.start is None else steady.start + 1,
        }
        for index, of_value in enumerate(zip(*processes, strict=True) if sum(shape) > 1 else ()):
            relative = median(of_value) / step
            of_one = {"number": index + 1, "relative": relative, "warm_up": index < shape[0]}
            made.append({**_keys(row), **of_one, **of_all})
    return _like(table, made, ("number", "relative", "warm_up", "steady", "steady_from", "bits", "blocks"))


NOTABLE = 1.1
"""A cell changes if one of its values is farther than this factor from its time of a step."""


def changing(sequences: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `values` for the cells that change."""
    far = sequences["relative"].map(math.log).abs()
    cells = far.groupby([sequences["engine"], sequences["interpreter"]], observed=True)
    return sequences[cells.transform("max") > math.log(NOTABLE)]


def settling(sequences: pd.DataFrame) -> str:
    """Say how many cells of `values` reached a steady state, and which never did; empty if there is no cell."""
    firsts = sequences[sequences["number"] == 1]
    long = firsts[firsts["steady"] != "too short"]
    never = [f"{row.engine} on {row.interpreter} ({row.steady})" for row in each(long[long["steady_from"].isna()])]
    found = []
    if len(long):
        found.append(
            f"Of {units.count(len(long), 'cell')} with {MIN_VALUES} values or more, {len(long) - len(never)} settled"
        )
    if never:
        found.append(f"not steady in every process: {', '.join(never)}")
    if short := len(firsts) - len(long):
        found.append(f"{units.count(short, 'cell')} with fewer than {MIN_VALUES} values: too short to tell")
    return f"{'; '.join(found)}." if found else ""


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


def _shape(record: Record) -> tuple[int, int]:
    return len(record.warmup_step_seconds), len(record.step_seconds)
