"""Every record as Apache Parquet, written by pandas and pyarrow: the columns of the CSV export, with types."""

from __future__ import annotations

import importlib
import io

import pandas as pd

from reports.exports import Export, Material, NoExport
from reports.exports.rows import rows
from results.record import Record

FILE = "records.parquet"
USE = "Read it with pandas.read_parquet, DuckDB or Polars: {path}"

WHOLE = frozenset(name for name, field in Record.model_fields.items() if field.annotation is int)
"""Columns of integers. All other numeric columns are doubles, whatever a run holds."""


def export(material: Material) -> Export:
    """Make a file with one row group. Missing figures are null."""
    try:
        importlib.import_module("pyarrow")  # at module level it would slow the start of every command
    except ImportError as error:
        raise NoExport(
            f"parquet needs pyarrow, which can't be imported: {error}",
            "Install it with `uv pip install -e '.[parquet]'`, or use --format csv.",
        ) from error
    table = rows(material)
    frame = pd.DataFrame(list(table.rows), columns=[column.name for column in table.columns])
    for column in table.columns:
        if column.numeric:
            # Empty text becomes NaN, which is null in the file.
            numbers = pd.to_numeric(frame[column.name], errors="coerce").astype("Float64")
            frame[column.name] = numbers.astype("Int64") if column.name in WHOLE else numbers
        else:
            frame[column.name] = frame[column.name].astype("string")
    buffer = io.BytesIO()
    frame.to_parquet(buffer, engine="pyarrow", index=False)
    return Export(buffer.getvalue(), table.left_out)
