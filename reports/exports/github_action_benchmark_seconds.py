"""Step and compile times for github-action-benchmark, in the format of its tool `customSmallerIsBetter`.

Use it only if CI always runs on the same machine: times of different machines can't be compared.
"""

from __future__ import annotations

from reports.exports import Export, Material
from reports.exports.github_action_benchmark import entries

FILE = "github-action-benchmark-seconds.json"
USE = "In the workflow: `tool: customSmallerIsBetter` and `output-file-path: {path}`"


def export(material: Material) -> Export:
    """Make two entries for each cell, one for each side of the trade-off."""
    return entries(material, {"step_seconds": "s", "compile_seconds": "s"})
