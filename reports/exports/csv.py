"""Every record as comma-separated values: seconds and bytes unrounded, missing figures empty.

Unlike the report's tables it does not summarize, but it also withholds the figures of a cell without a result.
"""

from __future__ import annotations

import csv
import io
import math
import re
from statistics import fmean

from zoomgrad.reports.exports.material import Export, Material, NoExport
from zoomgrad.reports.measured.headline import status_text
from zoomgrad.reports.measured.outcome import MEASURED, Outcome, by_cell, outcome
from zoomgrad.reports.measured.table import FIGURES, NAN, PHASES, phase_column
from zoomgrad.results.record import Record, Run
from zoomgrad.results.samples import compile_seconds

FILE = "records.csv"
USE = "Open {path} in a spreadsheet, or read it with pandas.read_csv"

# A spreadsheet runs text that starts like a formula; a leading apostrophe prevents it.
_FORMULA = re.compile(r"\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|[\t\r\n]")


def export(material: Material) -> Export:
    """Make a CSV file with a header line, as in RFC 4180: the records in plan order, then by block.

    The first column names the run, so that files of several runs can be concatenated.
    """
    run, blocks = material.view.run, by_cell(material.view.run, material.view.records)
    rows = [
        _row(run, record, whole)
        for cell, whole in material.view.outcomes.items()
        for record in sorted(blocks[cell], key=lambda record: record.block)
    ]
    if not rows:
        raise NoExport(f"{run.id} has no record", "Measure some cells with `zoomgrad run`.")
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows({name: _safe(value) for name, value in row.items()} for row in rows)
    return Export(text.getvalue(), sum(not blocks[cell] for cell in blocks))


def _safe(value: str) -> str:
    return f"'{value}" if _FORMULA.match(value) else value


def _row(run: Run, record: Record, whole: Outcome) -> dict[str, str]:
    """One record as texts. whole: the outcome of all its cell's blocks."""
    cell, alone = record.cell, outcome([record], run.engines.get(record.cell.engine))
    withheld = f"not shown: {whole.reason}" if record.status == MEASURED != whole.status else ""
    compiled = compile_seconds(record)
    figures = {
        "step_seconds": fmean(record.step_seconds) if record.step_seconds else NAN,
        "compile_seconds": NAN if compiled is None else compiled,
        **{phase_column(name): record.phases.get(name, NAN) for name in PHASES},
        # 0 means that the figure does not apply.
        **{name: getattr(record, name) or NAN for name in (*FIGURES, "steps_per_value")},
    }
    return {
        "run": run.id,
        "engine": cell.engine,
        "interpreter": cell.interpreter,
        "workload": cell.workload,
        "block": str(record.block),
        "status": status_text(record.status),
        **{name: "" if alone.status != MEASURED or withheld else _number(value) for name, value in figures.items()},
        "compiler": record.compiler,
        "compiler_flags": " ".join(record.compiler_flags),
        "bits": alone.bits if record.proof or record.status == MEASURED else "",
        "worst_error": _number(alone.worst_error),
        "reason": withheld or record.reason,
    }


def _number(value: float) -> str:
    return "" if math.isnan(value) else "Infinity" if math.isinf(value) else repr(value)
