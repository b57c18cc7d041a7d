"""Exports of a run to other tools' formats: one module per format, listed in `EXPORTERS`.

Exports compute no figures: rows are records, figures come from the table that `reports.measured`
makes. A cell without a result never becomes a number. If a format has no place for the reason, the export counts the
cell as left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from zoomgrad.reports.exports import csv, github_action_benchmark, pyperf, speedscope
from zoomgrad.reports.exports.material import Export, Material, NoExport

__all__ = ["EXPORTERS", "Export", "Exporter", "Material", "NoExport"]


class Exporter(Protocol):
    """What a module in this folder must define to be an export."""

    FILE: str
    """Name of the file beside the run."""
    USE: str
    """How to use the file at `{path}`; the command prints it as its last line."""

    def export(self, material: Material) -> Export:
        """Make the file's content. Raises NoExport."""


EXPORTERS: Mapping[str, Exporter] = {
    "csv": csv,
    "github-action-benchmark": github_action_benchmark,
    "pyperf": pyperf,
    "speedscope": speedscope,
}
