"""Run and records -> one row for each cell. Every measured figure is a column of this table.

Seconds are medians over processes of process means, corrected to the run's median pace (`results.samples`). A speedup
is the quotient of two of these medians.
Bounds (`*_low`, `*_high`) are NaN below 3 processes; those of compile time, below 3 blocks that compiled. Every figure
of a cell that is not "measured" is NaN; `reports.measured.outcome` decides what counts as measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from zoomgrad.reports.measured.outcome import IDENTICAL, MEASURED, Outcome, by_cell, outcomes, promise
from zoomgrad.results.record import Cell, Record, Run
from zoomgrad.results.samples import (
    Blocks,
    at_median_pace,
    baseline_of,
    compile_seconds,
    hosts_of,
    speedup,
    step_seconds,
)
from zoomgrad.results.stats import intervals

NAN = float("nan")

FIGURES = tuple(
    name
    for name, field in Record.model_fields.items()
    if field.annotation in (int, float) and name not in ("block", "stretch_steps", "steps_per_value")
)
"""Columns named after fields of the record: adding a number to `Record` adds a column."""

PHASES = ("trace", "lower", "generate", "compile", "load")
"""The phases of compile time, in the order in which they run."""


def phase_column(phase: str) -> str:
    """Return the column of a phase. `compile_seconds`, without the prefix, is the sum of all phases."""
    return f"phase_{phase}_seconds"


KEYS = ("engine", "interpreter", "workload")
COLUMNS = (
    *KEYS,
    *("peer", "on_reference", "status", "reason", "remedy", "promise", "bits", "worst_error", "blocks"),
    *("step_seconds", "step_seconds_low", "step_seconds_high"),
    *("compile_seconds", "compile_seconds_low", "compile_seconds_high"),
    *("epoch_seconds", "epoch_seconds_low", "epoch_seconds_high", "extrapolated", "sample_seconds"),
    *("speedup", "speedup_low", "speedup_high"),
    "twin",
    *(phase_column(phase) for phase in PHASES),
    *FIGURES,
)

Row = dict[str, object]

ON_THREADS = re.compile(r"\+threads\b")
"""Names of engines that divide a step among threads."""
_CHOICES = re.compile(r"(?:\+(?:O=\d|generic|fma|threads(?:=\d+)?))+|-fast|-v[248]|-f32")
"""What follows the name of an engine that changes flags or the number of threads, and not what the engine does. Older
runs also have engines with another width of vectors or float32."""


def cells(run: Run, records: Iterable[Record], of_cells: Mapping[Cell, Outcome] | None = None) -> pd.DataFrame:
    """Return one row for each planned cell, in plan order. Records of other cells are left out.

    of_cells: the cells' outcomes, if the caller has them already.

    `engine`, `interpreter` and `workload` are ordered categories in the run's order, so all tables and charts sort the
    same way and an engine has one colour. `on_reference` marks rows of the reference CPython.
    """
    records = at_median_pace(records)
    blocks = by_cell(run, records)
    of_cells = outcomes(run, records) if of_cells is None else of_cells
    results = {
        cell: [record for record in of_cell if record.status == MEASURED]
        for cell, of_cell in blocks.items()
        if of_cells[cell].status == MEASURED
    }
    seconds = step_seconds(record for of_cell in results.values() for record in of_cell)
    hosts = {record.block: record.host for record in records if record.host}
    rows = [_row(run, cell, of_cells[cell], results, seconds, hosts) for cell in blocks]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    listed = (list(run.engines), list(run.interpreters), list(run.workloads))
    for key, known in zip(KEYS, listed, strict=True):
        order = dict.fromkeys([*known, *(str(getattr(cell, key)) for cell in run.cells)])
        table[key] = pd.Categorical(table[key], categories=list(order), ordered=True)
    return table


def measured(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a result."""
    return table[table["status"] == MEASURED]


def each(rows: pd.DataFrame) -> Iterator[Any]:
    """Iterate over rows, with columns as attributes. Untyped, because pandas does not know column types."""
    return iter(rows.itertuples(index=False))


def main_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows without peers and without engines that differ from another one in options only."""
    return without_choices(table[table["peer"] == ""])


def graph_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the main rows without handwritten kernels, which run no graph."""
    rows = main_rows(table)
    return rows[~rows["engine"].astype(str).str.startswith("handwritten")]


def ranked_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have a rank: engines that run the graph on one thread with the reference's bits.

    All other rows are for comparison: handwritten kernels, peers, and engines with an error bound or several threads.
    Engines that differ from another one in options have no rank either: among many, one would be fastest by chance.
    """
    rows = graph_rows(table)
    return rows[(rows["promise"] == IDENTICAL) & ~rows["engine"].astype(str).str.contains(ON_THREADS)]


def twin(run: Run, engine: str) -> str:
    """Return the engine whose name the given one extends, as by an option; empty if it builds on none of that kind."""
    facts = run.engines.get(engine)
    return facts.builds_on if facts and engine.startswith((f"{facts.builds_on}+", f"{facts.builds_on}-")) else ""


def without_choices(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows without those that differ from a twin in flags or the number of threads only.

    A row whose twin has no result on its interpreter and workload stays: nothing else shows it.
    """
    results = {(row.engine, row.interpreter, row.workload) for row in each(measured(table))}
    own = [
        (row.twin, row.interpreter, row.workload) not in results
        or not _CHOICES.fullmatch(str(row.engine).removeprefix(str(row.twin)))
        for row in each(table)
    ]
    return table[pd.Series(own, index=table.index, dtype=bool)]


def smallest(rows: pd.DataFrame, column: str) -> Any:
    """Return the row with the smallest figure in a column; rows must not be empty."""
    return rows.iloc[int(rows[column].argmin())]


def in_order(table: pd.DataFrame, key: str) -> list[str]:
    """Return the engines, interpreters or workloads that occur in `table`, in the run's order."""
    present = set(table[key])
    return [name for name in table[key].cat.categories if name in present]


def _row(
    run: Run,
    cell: Cell,
    outcome: Outcome,
    results: Mapping[Cell, Sequence[Record]],
    seconds: Mapping[Cell, Blocks],
    hosts: Mapping[int, str],
) -> Row:
    row: Row = {
        **dict.fromkeys(COLUMNS, NAN),
        **{key: getattr(cell, key) for key in KEYS},
        "peer": facts.peer if (facts := run.engines.get(cell.engine)) else "",
        "on_reference": cell.interpreter == run.reference_interpreter,
        "twin": twin(run, cell.engine),
        "status": outcome.status,
        "reason": outcome.reason,
        "remedy": outcome.remedy,
        "promise": promise(run.engines.get(cell.engine)),
        "bits": outcome.bits,
        "worst_error": outcome.worst_error,
        "blocks": 0,
        "extrapolated": False,
    }
    records = results.get(cell)
    if records is None:
        return row

    row["blocks"] = len(records)
    row |= _times(run, cell, records, hosts)
    row |= _bounded("compile_seconds", _compile_time(records, hosts))
    row |= _bounded("speedup", _speedup(cell, seconds, hosts))
    row |= {phase_column(phase): _phase_seconds(phase, records) for phase in PHASES}
    return row | {name: _figure(name, records) for name in FIGURES}


def _times(run: Run, cell: Cell, records: Sequence[Record], hosts: Mapping[int, str]) -> Row:
    step, workload = _median({one.block: one.step_seconds for one in records}, hosts), run.workloads.get(cell.workload)
    row = _bounded("step_seconds", step)
    if workload is not None and workload.steps_per_epoch:
        steps = workload.steps_per_epoch
        row |= _bounded("epoch_seconds", intervals.Interval(step.value * steps, step.low * steps, step.high * steps))
        # A stretch is trained repeatedly, so only its distinct steps count towards an epoch.
        taken = (one.stretch_steps or len(one.step_seconds) * one.steps_per_value for one in records)
        row["extrapolated"] = min(taken) < steps
    if workload is not None and workload.samples_per_step:
        row["sample_seconds"] = step.value / workload.samples_per_step
    return row


def _speedup(cell: Cell, seconds: Mapping[Cell, Blocks], hosts: Mapping[int, str]) -> intervals.Interval:
    base = baseline_of(cell)
    if base not in seconds:
        return intervals.Interval(NAN, NAN, NAN)
    if base == cell:
        return intervals.Interval(1.0, 1.0, 1.0)
    return speedup(seconds[base], seconds[cell], hosts)


def _bounded(column: str, figure: intervals.Interval) -> Row:
    return {column: figure.value, f"{column}_low": figure.low, f"{column}_high": figure.high}


def _median(blocks: Blocks, hosts: Mapping[int, str]) -> intervals.Interval:
    samples = [blocks[block] for block in sorted(blocks)]
    try:
        return intervals.step_time(samples, hosts_of(blocks, hosts))
    except intervals.TooFewProcesses:
        return intervals.Interval(intervals.median_of_processes(samples), NAN, NAN)


def _compile_time(records: Sequence[Record], hosts: Mapping[int, str]) -> intervals.Interval:
    """Return the median over the blocks that compiled; a later block may only load the object.

    0 if there was nothing to compile; NaN if every block loaded an object that an interrupted block had compiled.
    """
    totals = {record.block: compile_seconds(record) for record in records}
    # A process compiles once, so each is a sample of one value.
    if compiled := {block: (seconds,) for block, seconds in totals.items() if seconds}:
        return _median(compiled, hosts)
    return intervals.Interval(NAN if None in totals.values() else 0.0, NAN, NAN)


def _phase_seconds(phase: str, records: Sequence[Record]) -> float:
    """Return the median over the blocks that recorded this phase; NaN if none did."""
    seconds = [record.phases[phase] for record in records if phase in record.phases]
    return float(np.median(seconds)) if seconds else NAN


def _figure(name: str, records: Sequence[Record]) -> float:
    """Return the largest of the blocks' peaks, because only the first may have compiled; the median of other figures.

    A block with 0 in the field did not record it.
    """
    values = [value for record in records if (value := getattr(record, name))]
    if not values:
        return NAN
    return float(max(values) if name.startswith("peak_") else np.median(values))
