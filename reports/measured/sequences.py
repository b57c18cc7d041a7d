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

from zoomgrad.reports.measured.outcome import MEASURED
from zoomgrad.reports.measured.table import KEYS, Row, each, in_order, measured
from zoomgrad.results.record import Cell, Record
from zoomgrad.results.stats.intervals import median_of_processes


def values(table: pd.DataFrame, records: Iterable[Record]) -> pd.DataFrame:
    """Return the run sequences of one workload: each cell's warm-up and timed values, in the order of their `number`.

    `relative`: the value divided by the cell's step time, median over processes. `warm_up`: whether the step time
    excludes the value. Of the interpreters without a just-in-time compiler only one is included, the reference CPython
    if it was measured: one is enough to show the cost of starting a process. Cells with a single value are left out.
    """
    blocks = _blocks(records)
    rows = measured(table)
    plain = [name for name in in_order(rows, "interpreter") if name.startswith("cpython")]
    at_home = in_order(rows[rows["on_reference"].astype(bool)], "interpreter")
    shown = {*in_order(rows, "interpreter")} - {*plain} | {*(at_home or plain)[:1]}
    made: list[Row] = []
    for row in each(rows[rows["interpreter"].isin(shown)]):
        of_cell = blocks[_cell(row)]
        # A process with slow steps takes fewer values; only the longest sequences are compared.
        shape = max(_shape(block) for block in of_cell)
        processes = [block.warmup_step_seconds + block.step_seconds for block in of_cell if _shape(block) == shape]
        step = median_of_processes([block.step_seconds for block in of_cell])
        of_all = {"bits": row.bits, "blocks": len(processes)}
        for index, of_value in enumerate(zip(*processes, strict=True) if sum(shape) > 1 else ()):
            relative = median(of_value) / step
            of_one = {"number": index + 1, "relative": relative, "warm_up": index < shape[0]}
            made.append({**_keys(row), **of_one, **of_all})
    return _like(table, made, ("number", "relative", "warm_up", "bits", "blocks"))


NOTABLE = 1.1
"""A cell changes if one of its values is farther than this factor from its time of a step."""


def changing(sequences: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `values` for the cells that change."""
    far = sequences["relative"].map(math.log).abs()
    cells = far.groupby([sequences["engine"], sequences["interpreter"]], observed=True)
    return sequences[cells.transform("max") > math.log(NOTABLE)]


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
