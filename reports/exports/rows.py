"""Every record as a row of unrounded values, for tabular formats."""

from __future__ import annotations

from dataclasses import dataclass

from reports.exports import Material, NoExport
from reports.sections.records import Column, Datum, every_record
from results import units
from results.record import Cell

RUN = Column("run", "run", numeric=False)
"""The first column, so that files of several runs can be concatenated."""


@dataclass(frozen=True)
class Rows:
    """Values as text, empty where there is none; numbers as Python writes them."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int
    """Number of cells without a record, because they were never run."""


def rows(material: Material) -> Rows:
    """Return the records of the planned cells, in plan order, then by block. Raises NoExport if there is none."""
    table = every_record(material.view)
    if table is None:
        raise NoExport(f"{material.view.run.id} has no record", "Measure some cells with `zoomgrad run`.")
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
