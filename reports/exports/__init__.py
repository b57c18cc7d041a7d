"""Exports of a run to other tools' formats: one module a format, discovered by its file name.

Exports compute no figures: rows come from `reports.sections.records`, figures from the table that `reports.measured`
makes. A cell without a result never becomes a number. If a format has no place for the reason, the export counts the
cell as left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast

from reports.discovery import defining
from reports.view import View
from results.record import Cell


class NoExport(Exception):
    """There is nothing to export, or a library is missing; the message gives reason and remedy."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}\n  {remedy}")


@dataclass(frozen=True)
class Material:
    """The input of every export."""

    view: View
    suites: Mapping[Cell, str] = field(default_factory=dict)
    """The text of each cell's pyperf file."""


@dataclass(frozen=True)
class Export:
    """A file in another tool's format."""

    content: str | bytes
    left_out: int = 0
    """Number of planned cells that the file leaves out."""


class Exporter(Protocol):
    """What a module in this folder must define to be an export."""

    FILE: str
    """Name of the file beside the run."""
    USE: str
    """How to use the file at `{path}`; the command prints it as its last line."""

    def export(self, material: Material) -> Export:
        """Make the file's content. Raises NoExport."""


def exporters() -> dict[str, Exporter]:
    """Return every export by the format's name."""
    modules = {
        name.replace("_", "-"): module
        for name, module in sorted(defining(Exporter, "export", __name__, __path__).items())
    }
    return {name: cast(Exporter, module) for name, module in modules.items()}
