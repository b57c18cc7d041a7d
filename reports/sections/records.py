"""View -> the table of every record: one row per cell and block, each figure as text and as an unrounded number.

Exports and the page's CSV have it. Unlike the report's tables it does not summarize, but it also withholds the figures
of a cell without a result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from reports.measured.headline import status_text
from reports.measured.outcome import MEASURED, Outcome, by_cell, outcome
from reports.measured.table import FIGURES, NAN, PHASES, phase_column
from reports.sections.compiling.phases import SIZES, size_text
from reports.text.figures import compile_time
from reports.view import View
from results import units
from results.record import Record, Run
from results.samples import compile_seconds

LEAD = (
    "Each row is one process: one cell in one block. “a step” is the mean of the timed values, and “compile time” the "
    "sum of its phases. Figures of a cell without a result are withheld; its reason says why."
)


@dataclass(frozen=True)
class Datum:
    """One entry of a row."""

    text: str
    value: str = ""
    """The unrounded number, as Python and JavaScript read it; empty if there is none, or in a column of text."""
    mark: str = ""
    """CSS class: a status, or `different`."""


@dataclass(frozen=True)
class Column:
    """name: for a file, with the unit; heading: for people."""

    name: str
    heading: str
    numeric: bool = True


@dataclass(frozen=True)
class EveryRecord:
    """All records of a run. A row has one datum per column; the first names the engine."""

    lead: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Datum, ...], ...]


@dataclass(frozen=True)
class _Entry:
    """A record, its own outcome, and why its figures are withheld (empty if they are shown)."""

    record: Record
    alone: Outcome
    withheld: str


def every_record(view: View) -> EveryRecord | None:
    """Return the records of the plan's cells, in plan order, then by block; None if there are none."""
    blocks = by_cell(view.run, view.records)
    rows = tuple(row for cell, whole in view.outcomes.items() for row in _rows(view.run, blocks[cell], whole))
    return EveryRecord(LEAD, tuple(column for column, _ in _COLUMNS), rows) if rows else None


def _rows(run: Run, blocks: list[Record], whole: Outcome) -> Iterable[tuple[Datum, ...]]:
    for record in sorted(blocks, key=lambda record: record.block):
        withheld = f"not shown: {whole.reason}" if record.status == MEASURED != whole.status else ""
        entry = _Entry(record, outcome([record], run.engines.get(record.cell.engine)), withheld)
        yield tuple(datum(entry) for _, datum in _COLUMNS)


def _number(value: float, text: str) -> Datum:
    if math.isnan(value):
        return Datum(units.ABSENT)
    return Datum(text, "Infinity" if math.isinf(value) else repr(value))


def _unless_withheld(figure: Callable[[Record], Datum]) -> Callable[[_Entry], Datum]:
    def datum(entry: _Entry) -> Datum:
        return Datum(units.ABSENT) if entry.alone.status != MEASURED or entry.withheld else figure(entry.record)

    return datum


def _seconds(figure: Callable[[Record], float]) -> Callable[[_Entry], Datum]:
    return _unless_withheld(lambda record: _number(seconds := figure(record), units.duration(seconds)))


def _compile(record: Record) -> Datum:
    seconds = compile_seconds(record)
    return Datum(units.ABSENT) if seconds is None else _number(seconds, compile_time(seconds))


def _phase(name: str) -> tuple[Column, Callable[[_Entry], Datum]]:
    return Column(phase_column(name), name), _seconds(lambda record: record.phases.get(name, NAN))


def _figure(name: str) -> tuple[Column, Callable[[_Entry], Datum]]:
    heading = SIZES.get(name) or name.removesuffix("_seconds").removesuffix("_bytes").replace("_", " ")

    def figure(record: Record) -> Datum:
        # A record that left the field at 0 did not record it.
        value = getattr(record, name) or NAN
        return _number(value, size_text(name, value))

    return Column(name, heading), _unless_withheld(figure)


def _bits(entry: _Entry) -> Datum:
    bits = entry.alone.bits
    if entry.record.proof is None and entry.record.status != MEASURED:
        return Datum(units.ABSENT)
    return Datum(bits, mark=bits if bits == "different" else "")


def _status(entry: _Entry) -> Datum:
    status = entry.record.status
    return Datum(status_text(status), mark="" if status == MEASURED else status)


def _reason(record: Record) -> str:
    return record.reason or (f"no ready time: {record.ready_absence}" if record.ready_absence else "")


def _text(figure: Callable[[_Entry], str]) -> Callable[[_Entry], Datum]:
    return lambda entry: Datum(figure(entry))


_COLUMNS: tuple[tuple[Column, Callable[[_Entry], Datum]], ...] = (
    (Column("engine", "engine", numeric=False), _text(lambda entry: entry.record.cell.engine)),
    (Column("interpreter", "interpreter", numeric=False), _text(lambda entry: entry.record.cell.interpreter)),
    (Column("workload", "workload", numeric=False), _text(lambda entry: entry.record.cell.workload)),
    (Column("block", "block"), lambda entry: _number(entry.record.block, str(entry.record.block))),
    (Column("status", "status", numeric=False), _status),
    (Column("step_seconds", "a step"), _seconds(lambda record: float(np.mean(record.step_seconds)))),
    (Column("compile_seconds", "compile time"), _unless_withheld(_compile)),
    *(_phase(name) for name in PHASES),
    *(_figure(name) for name in FIGURES if name not in SIZES),
    *(_figure(name) for name in SIZES),
    (Column("steps_per_value", "steps per value"), _figure("steps_per_value")[1]),
    (Column("compiler", "compiler", numeric=False), _text(lambda entry: entry.record.compiler)),
    (Column("compiler_flags", "flags", numeric=False), _text(lambda entry: " ".join(entry.record.compiler_flags))),
    (Column("bits", "bits", numeric=False), _bits),
    (
        Column("worst_error", "worst error"),
        lambda entry: _number(entry.alone.worst_error, units.error(entry.alone.worst_error)),
    ),
    (Column("reason", "reason", numeric=False), _text(lambda entry: entry.withheld or _reason(entry.record))),
)
"""Each column with the function that fills it, in the page's order."""
