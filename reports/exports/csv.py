"""Every record as comma-separated values: seconds and bytes unrounded, missing figures empty."""

from __future__ import annotations

import csv
import io
import re

from zoomgrad.reports.exports.material import Export, Material, NoExport
from zoomgrad.reports.exports.records import every_record

FILE = "records.csv"
USE = "Open {path} in a spreadsheet, or read it with pandas.read_csv"

# A spreadsheet runs text that starts like a formula; a leading apostrophe prevents it.
_FORMULA = re.compile(r"\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|[\t\r\n]")


def export(material: Material) -> Export:
    """Make a CSV file with a header line, as in RFC 4180: the records in plan order, then by block.

    The first column names the run, so that files of several runs can be concatenated.
    """
    run = material.view.run
    table = every_record(material.view)
    if table is None:
        raise NoExport(f"{run.id} has no record", "Measure some cells with `zoomgrad run`.")
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["run", *table.columns])
    for row in table.rows:
        named = zip(table.columns, row, strict=True)
        writer.writerow([run.id, *(value if name in table.numeric else _text(value) for name, value in named)])
    recorded = {record.cell for record in material.view.records}
    return Export(text.getvalue(), sum(cell not in recorded for cell in run.cells))


def _text(value: str) -> str:
    return f"'{value}" if _FORMULA.match(value) else value
