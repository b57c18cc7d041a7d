"""Every figure of every measured cell in the Bencher Metric Format: a benchmark is a cell, a measure is a column.

A measure has its column's name, with hyphens. The exception is the time of a step: it becomes Bencher's own measure
`latency`, in nanoseconds. https://bencher.dev/docs/reference/bencher-metric-format
"""

from __future__ import annotations

import json
import math

from reports.exports import Export, Material
from reports.exports.figures import figures
from results.stats.intervals import Interval

FILE = "bencher.json"
USE = "Send it to Bencher: bencher run --adapter json --file {path}"

LATENCY = "step_seconds"
NANOSECONDS = 1e9


def export(material: Material) -> Export:
    """Make a JSON object keyed by benchmark, then by measure, with bounds where the table has them."""
    found = figures(material)
    metrics = {
        key: dict(_measure(column, figure) for column, figure in by_column.items())
        for key, by_column in found.cells.items()
    }
    return Export(json.dumps(metrics, indent=1) + "\n", found.left_out)


def _measure(column: str, figure: Interval) -> tuple[str, dict[str, float]]:
    if column == LATENCY:
        scaled = Interval(*(part * NANOSECONDS for part in (figure.value, figure.low, figure.high)))
        return "latency", _metric(scaled)
    return column.replace("_", "-"), _metric(figure)


def _metric(figure: Interval) -> dict[str, float]:
    if math.isnan(figure.low):
        return {"value": figure.value}
    return {"value": figure.value, "lower_value": figure.low, "upper_value": figure.high}
