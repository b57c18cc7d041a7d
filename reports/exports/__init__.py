"""Exports of a run into other tools' formats: one file each, found in this folder, known by its file's name.

An export computes no figure of its own: rows are those of `sections.records`, figures those of the view's table. A cell
without a result never becomes a number; a format that has no place for the reason counts the cell as left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast

from reports.discovery import defining
from reports.view import View
from results.record import Cell


class NoExport(Exception):
    """Nothing to export, or a library that is missing: why, and what to do."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}\n  {remedy}")


@dataclass(frozen=True)
class Material:
    """What an export is made from."""

    view: View
    suites: Mapping[Cell, str] = field(default_factory=dict)
    """The cells' pyperf files, as text."""


@dataclass(frozen=True)
class Export:
    """A file in another tool's format."""

    content: str | bytes
    left_out: int = 0
    """Cells of the plan of which the file says nothing."""


class Exporter(Protocol):
    """What a file in this folder defines to be an export."""

    FILE: str
    """Its name beside the run."""
    USE: str
    """What to do with it, where `{path}` is; the last line that the command prints."""

    def export(self, material: Material) -> Export:
        """Make it. Raises NoExport."""


def exporters() -> dict[str, Exporter]:
    """Every export by its name."""
    modules = {
        name.replace("_", "-"): module
        for name, module in sorted(defining(Exporter, "export", __name__, __path__).items())
    }
    return {name: cast(Exporter, module) for name, module in modules.items()}
