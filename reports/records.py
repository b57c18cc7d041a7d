"""Run and records -> the table of every record, a row a block, each figure both as text and as the number behind it.

The only table of the report that does not summarize. A cell whose outcome is not a result shows no figure here either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from reports.figures import compile_time
from reports.headline import status_text
from reports.outcome import MEASURED, Outcome, by_cell, outcome
from reports.phases import SIZES, size_text
from reports.table import FIGURES, NAN, PHASES, phase_column
from results import units
from results.record import Record, Run

LEAD = (
    "A row is one process: a cell in a block. A step is the mean of the timed values, compile time the sum of its "
    "phases. Figures of a cell without a result are withheld, and the reason says why."
)


@dataclass(frozen=True)
class Datum:
    """One entry of a row."""

    text: str
    value: str = ""
    """The unrounded number, as Python and JavaScript read it; empty where there is none, or in a column of text."""
    mark: str = ""
    """What the page's style sheet sets apart: a status, `different`."""


@dataclass(frozen=True)
class Column:
    """name: with its unit, for a file; heading: for people."""

    name: str
    heading: str
    numeric: bool = True


@dataclass(frozen=True)
class EveryRecord:
    """All records of a run; a row has a datum a column, the first of which names the engine."""

    lead: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Datum, ...], ...]


@dataclass(frozen=True)
class _Judged:
    """A record, what it alone amounts to, and why its figures are withheld, if they are."""

    record: Record
    alone: Outcome
    withheld: str


def every_record(run: Run, records: Iterable[Record]) -> EveryRecord | None:
    """The records of the plan's cells, in its order, then by block; None where there is none."""
    rows = tuple(row for blocks in by_cell(run, records).values() for row in _rows(run, blocks))
    return EveryRecord(LEAD, tuple(column for column, _ in _COLUMNS), rows) if rows else None


def _rows(run: Run, blocks: list[Record]) -> Iterable[tuple[Datum, ...]]:
    facts = run.engines.get(blocks[0].cell.engine) if blocks else None
    whole = outcome(blocks, facts)
    for record in sorted(blocks, key=lambda record: record.block):
        withheld = f"not shown: {whole.reason}" if record.status == MEASURED != whole.status else ""
        judged = _Judged(record, outcome([record], facts), withheld)
        yield tuple(datum(judged) for _, datum in _COLUMNS)


def _number(value: float, text: str) -> Datum:
    if math.isnan(value):
        return Datum(units.ABSENT)
    return Datum(text, "Infinity" if math.isinf(value) else repr(value))


def _shown(figure: Callable[[Record], Datum]) -> Callable[[_Judged], Datum]:
    def datum(judged: _Judged) -> Datum:
        return Datum(units.ABSENT) if judged.alone.status != MEASURED or judged.withheld else figure(judged.record)

    return datum


def _seconds(figure: Callable[[Record], float]) -> Callable[[_Judged], Datum]:
    return _shown(lambda record: _number(seconds := figure(record), units.duration(seconds)))


def _compile(record: Record) -> Datum:
    if record.phases:
        seconds = sum(record.phases.values())
        return _number(seconds, compile_time(seconds))
    # Without phases, a record with a tape loaded what an earlier block had compiled.
    return Datum(units.ABSENT) if record.tape_rows else _number(0.0, compile_time(0.0))


def _phase(name: str) -> tuple[Column, Callable[[_Judged], Datum]]:
    return Column(phase_column(name), name), _seconds(lambda record: record.phases.get(name, NAN))


def _figure(name: str) -> tuple[Column, Callable[[_Judged], Datum]]:
    heading = SIZES.get(name) or name.removesuffix("_seconds").removesuffix("_bytes").replace("_", " ")

    def figure(record: Record) -> Datum:
        # A record that left the field at 0 did not record it.
        value = getattr(record, name) or NAN
        return _number(value, size_text(name, value))

    return Column(name, heading), _shown(figure)


def _bits(judged: _Judged) -> Datum:
    bits = judged.alone.bits
    if judged.record.proof is None and judged.record.status != MEASURED:
        return Datum(units.ABSENT)
    return Datum(bits, mark=bits if bits == "different" else "")


def _status(judged: _Judged) -> Datum:
    status = judged.record.status
    return Datum(status_text(status), mark="" if status == MEASURED else status)


def _text(figure: Callable[[_Judged], str]) -> Callable[[_Judged], Datum]:
    return lambda judged: Datum(figure(judged))


_COLUMNS: tuple[tuple[Column, Callable[[_Judged], Datum]], ...] = (
    (Column("engine", "engine", numeric=False), _text(lambda judged: judged.record.cell.engine)),
    (Column("interpreter", "interpreter", numeric=False), _text(lambda judged: judged.record.cell.interpreter)),
    (Column("workload", "workload", numeric=False), _text(lambda judged: judged.record.cell.workload)),
    (Column("block", "block"), lambda judged: _number(judged.record.block, str(judged.record.block))),
    (Column("status", "status", numeric=False), _status),
    (Column("step_seconds", "a step"), _seconds(lambda record: float(np.mean(record.step_seconds)))),
    (Column("compile_seconds", "compile time"), _shown(_compile)),
    *(_phase(name) for name in PHASES),
    *(_figure(name) for name in FIGURES if name not in SIZES),
    *(_figure(name) for name in SIZES),
    (Column("steps_per_value", "steps a value"), _figure("steps_per_value")[1]),
    (Column("compiler", "compiler", numeric=False), _text(lambda judged: judged.record.compiler)),
    (Column("compiler_flags", "flags", numeric=False), _text(lambda judged: " ".join(judged.record.compiler_flags))),
    (Column("bits", "bits", numeric=False), _bits),
    (
        Column("worst_error", "worst error"),
        lambda judged: _number(judged.alone.worst_error, units.error(judged.alone.worst_error)),
    ),
    (Column("reason", "reason", numeric=False), _text(lambda judged: judged.withheld or judged.record.reason)),
)
"""A column and what a record has in it, in the order of the page."""
