"""Speedups for github-action-benchmark, as its tool `customBiggerIsBetter` reads them.

A speedup is a ratio of times of one run, so that it may be compared between the machines that a CI gives; a time may
not. `github-action-benchmark-seconds` has the times.
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
    """One entry a cell: its speedup over the baseline on the same interpreter."""
    return entries(material, {"speedup": "×"})


def entries(material: Material, wanted: dict[str, str]) -> Export:
    """An array of entries, named by cell and column. wanted: columns of the table, with their units."""
    run = material.view.run
    found: list[dict[str, object]] = []
    with_entry = set()
    for key, by_column in figures(material).cells.items():
        about = "\n".join(f"{name}: {units.by_name(name, figure.value)}" for name, figure in by_column.items())
        for column, unit in wanted.items():
            figure = by_column.get(column)
            # The action divides by the figure before: an engine that compiles nothing would give 0 / 0.
            if figure and figure.value:
                entry = {"name": f"{key} {column}", "unit": unit, "value": figure.value, **_range(figure)}
                found.append({**entry, "extra": f"{run.id} {run.commit}".strip() + f"\n{about}"})
                with_entry.add(key)
    if not found:
        raise NoExport(f"{run.id} has no {' or '.join(wanted)}", "A speedup needs `baseline` in the same run.")
    return Export(json.dumps(found, indent=1, ensure_ascii=False) + "\n", len(run.cells) - len(with_entry))


def _range(figure: Interval) -> dict[str, str]:
    """The action shows one deviation for both sides: the larger one is the cautious one."""
    if math.isnan(figure.low):
        return {}
    return {"range": f"± {max(figure.high - figure.value, figure.value - figure.low)}"}
