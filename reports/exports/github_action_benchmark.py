"""Speedups for github-action-benchmark, in the format of its tool `customBiggerIsBetter`.

A speedup is a ratio of two times of one run, so it can be compared between the machines that a CI service assigns.
Times can't; `github-action-benchmark-seconds` exports those.
"""

from __future__ import annotations

import json
import math

from reports.exports import Export, Material, NoExport
from reports.exports.figures import figures
from results import units
from results.stats.intervals import Interval

FILE = "github-action-benchmark.json"
USE = "In the workflow: `tool: customBiggerIsBetter` and `output-file-path: {path}`"


def export(material: Material) -> Export:
    """Make one entry for each cell: its speedup over the baseline on the same interpreter."""
    return entries(material, {"speedup": "×"})


def entries(material: Material, wanted: dict[str, str]) -> Export:
    """Make a JSON array of entries, named by cell and column. wanted: columns of the table, with their units."""
    run = material.view.run
    found: list[dict[str, object]] = []
    with_entry = set()
    for key, by_column in figures(material).cells.items():
        about = "\n".join(f"{name}: {units.by_name(name, figure.value)}" for name, figure in by_column.items())
        for column, unit in wanted.items():
            figure = by_column.get(column)
            # The action divides by the previous figure: an engine that compiles nothing would give 0 / 0.
            if figure and figure.value:
                entry = {"name": f"{key} {column}", "unit": unit, "value": figure.value, **_range(figure)}
                found.append({**entry, "extra": f"{run.id} {run.commit}".strip() + f"\n{about}"})
                with_entry.add(key)
    if not found:
        raise NoExport(f"{run.id} has no {' or '.join(wanted)}", "A speedup needs `baseline` in the same run.")
    return Export(json.dumps(found, indent=1, ensure_ascii=False) + "\n", len(run.cells) - len(with_entry))


def _range(figure: Interval) -> dict[str, str]:
    """Return the larger of the two deviations: the action shows a single one for both sides."""
    if math.isnan(figure.low):
        return {}
    return {"range": f"± {max(figure.high - figure.value, figure.value - figure.low)}"}
