"""View -> the table of every record: one row per cell and block, with unrounded numbers.

Exports and the page's CSV have it. Unlike the report's tables it does not summarize, but it also withholds the figures
of a cell without a result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from zoomgrad.reports.measured.headline import status_text
from zoomgrad.reports.measured.outcome import MEASURED, Outcome, by_cell, outcome
from zoomgrad.reports.measured.table import FIGURES, NAN, PHASES, phase_column
from zoomgrad.reports.view import View
from zoomgrad.results.record import Record, Run
from zoomgrad.results.samples import compile_seconds


@dataclass(frozen=True)
class EveryRecord:
    """All records of a run: a row has one value per column, as text. A missing figure is empty."""

    columns: tuple[str, ...]
    numeric: frozenset[str]
    """Columns of numbers, as Python and JavaScript read them. The others hold texts of the run."""
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class _Entry:
    """A record, its own outcome, and why its figures are withheld (empty if they are shown)."""

    record: Record
    alone: Outcome
    withheld: str


_Value = Callable[[_Entry], str]


def every_record(view: View) -> EveryRecord | None:
    """Return the records of the plan's cells, in plan order, then by block; None if there are none."""
    blocks = by_cell(view.run, view.records)
    rows = tuple(row for cell, whole in view.outcomes.items() for row in _rows(view.run, blocks[cell], whole))
    return EveryRecord(tuple(_COLUMNS), frozenset(_COLUMNS) - _TEXTS, rows) if rows else None


def _rows(run: Run, blocks: list[Record], whole: Outcome) -> Iterable[tuple[str, ...]]:
    for record in sorted(blocks, key=lambda record: record.block):
        withheld = f"not shown: {whole.reason}" if record.status == MEASURED != whole.status else ""
        entry = _Entry(record, outcome([record], run.engines.get(record.cell.engine)), withheld)
        yield tuple(value(entry) for value in _COLUMNS.values())


def _number(value: float) -> str:
    return "" if math.isnan(value) else "Infinity" if math.isinf(value) else repr(value)


def _figure(figure: Callable[[Record], float]) -> _Value:
    """Return the function for a column of figures, which are withheld where a cell has no result."""

    def value(entry: _Entry) -> str:
        return "" if entry.alone.status != MEASURED or entry.withheld else _number(figure(entry.record))

    return value


def _compile(record: Record) -> float:
    seconds = compile_seconds(record)
    return NAN if seconds is None else seconds


def _phase(name: str) -> _Value:
    return _figure(lambda record: record.phases.get(name, NAN))


def _field(name: str) -> _Value:
    # A record that left the field at 0 did not record it.
    return _figure(lambda record: getattr(record, name) or NAN)


def _bits(entry: _Entry) -> str:
    return "" if entry.record.proof is None and entry.record.status != MEASURED else entry.alone.bits


_COLUMNS: dict[str, _Value] = {
    "engine": lambda entry: entry.record.cell.engine,
    "interpreter": lambda entry: entry.record.cell.interpreter,
    "workload": lambda entry: entry.record.cell.workload,
    "block": lambda entry: str(entry.record.block),
    "status": lambda entry: status_text(entry.record.status),
    "step_seconds": _figure(lambda record: float(np.mean(record.step_seconds))),
    "compile_seconds": _figure(_compile),
    **{phase_column(name): _phase(name) for name in PHASES},
    **{name: _field(name) for name in (*FIGURES, "steps_per_value")},
    "compiler": lambda entry: entry.record.compiler,
    "compiler_flags": lambda entry: " ".join(entry.record.compiler_flags),
    "bits": _bits,
    "worst_error": lambda entry: _number(entry.alone.worst_error),
    "reason": lambda entry: entry.withheld or entry.record.reason,
}
"""Each column with the function that fills it."""
_TEXTS = {"engine", "interpreter", "workload", "status", "compiler", "compiler_flags", "bits", "reason"}
