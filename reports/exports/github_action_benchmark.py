"""Speedups for github-action-benchmark, in the format of its tool `customBiggerIsBetter`.

A speedup is a ratio of two times within a run, so it can be compared between the machines that a CI service assigns.
"""

from __future__ import annotations

import json
import math

from zoomgrad.reports.exports.material import Export, Material, NoExport
from zoomgrad.reports.measured.table import each, measured
from zoomgrad.results import units

FILE = "github-action-benchmark.json"
USE = "In the workflow: `tool: customBiggerIsBetter` and `output-file-path: {path}`"

DETAILS = ("step_seconds", "compile_seconds", "peak_bytes")
"""Columns that an entry shows as text."""


def export(material: Material) -> Export:
    """Make one entry for each cell: its speedup over the baseline on the same interpreter."""
    run = material.view.run
    entries: list[dict[str, object]] = []
    for row in each(measured(material.view.table)):
        # The action divides by the previous figure, so it must not be 0.
        if not math.isfinite(row.speedup) or not row.speedup:
            continue
        key = f"{row.engine}/{row.interpreter}/{row.workload}"
        details = "\n".join(f"{name}: {units.by_name(name, float(getattr(row, name)))}" for name in DETAILS)
        entry = {"name": f"{key} speedup", "unit": "×", "value": float(row.speedup)}
        if math.isfinite(row.speedup_low):
            # The action shows one deviation for both sides.
            entry["range"] = f"± {max(row.speedup_high - row.speedup, row.speedup - row.speedup_low)}"
        entries.append({**entry, "extra": f"{run.id} {run.commit}".strip() + f"\n{details}"})
    if not entries:
        raise NoExport(f"{run.id} has no speedup", "A speedup needs `baseline` in the same run.")
    return Export(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", len(run.cells) - len(entries))
