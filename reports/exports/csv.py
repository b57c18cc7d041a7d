"""Every record as comma-separated values: seconds and bytes unrounded, missing figures empty."""

from __future__ import annotations

import csv
import io
import re

from reports.exports import Export, Material
from reports.exports.rows import rows
from reports.sections.records import Column

FILE = "records.csv"
USE = "Open {path} in a spreadsheet, or read it with pandas.read_csv"

# A spreadsheet runs text that starts like a formula; a leading apostrophe prevents it.
_FORMULA = re.compile(r"\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|[\t\r\n]")


def export(material: Material) -> Export:
    """Make a CSV file with a header line, as in RFC 4180."""
    table = rows(material)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([column.name for column in table.columns])
    for row in table.rows:
        writer.writerow([_safe(column, value) for column, value in zip(table.columns, row, strict=True)])
    return Export(text.getvalue(), table.left_out)


def _safe(column: Column, value: str) -> str:
    return f"'{value}" if not column.numeric and _FORMULA.match(value) else value
