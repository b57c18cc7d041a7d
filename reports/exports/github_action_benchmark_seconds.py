"""Step and compile times for github-action-benchmark, as its tool `customSmallerIsBetter` reads them.

For a CI that always has the same machine: a time on another one says nothing.
"""

from __future__ import annotations

from reports.exports import Export, Material
from reports.exports.github_action_benchmark import entries

FILE = "github-action-benchmark-seconds.json"
USE = "In the workflow: `tool: customSmallerIsBetter` and `output-file-path: {path}`"


def export(material: Material) -> Export:
    """Two entries a cell: the two sides of the trade-off."""
    return entries(material, {"step_seconds": "s", "compile_seconds": "s"})
