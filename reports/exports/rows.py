"""Every record as a row of unrounded values, for the formats that hold a table: columns are those of the report's."""

from __future__ import annotations

from dataclasses import dataclass

from reports.exports import Material, NoExport
from reports.sections.records import Column, Datum, every_record
from results import units
from results.record import Cell

RUN = Column("run", "run", numeric=False)
"""Comes first, so that files of several runs can be put together."""


@dataclass(frozen=True)
class Rows:
    """Text values, empty where there is none; numbers as Python reads them."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int
    """Cells that were never run, and have no record."""


def rows(material: Material) -> Rows:
    """The records of the plan's cells, in its order, then by block. Raises NoExport where there is none."""
    table = every_record(material.view)
    if table is None:
        raise NoExport(f"{material.view.run.id} has no record", "Measure something: `zoomgrad run`.")
    values = tuple(
        (material.view.run.id, *(_value(column, datum) for column, datum in zip(table.columns, row, strict=True)))
        for row in table.rows
    )
    recorded: set[Cell] = {record.cell for record in material.view.records}
    return Rows((RUN, *table.columns), values, sum(cell not in recorded for cell in material.view.run.cells))


def _value(column: Column, datum: Datum) -> str:
    if column.numeric:
        return datum.value
    return "" if datum.text == units.ABSENT else datum.text
