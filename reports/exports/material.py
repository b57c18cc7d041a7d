"""What an export receives and returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from zoomgrad.reports.view import View, view
from zoomgrad.results.files import read_text
from zoomgrad.results.record import Cell
from zoomgrad.results.store import Store


class NoExport(Exception):
    """There is nothing to export; the message gives reason and remedy."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}\n  {remedy}")


@dataclass(frozen=True)
class Material:
    """The input of every export."""

    view: View
    suites: Mapping[Cell, str] = field(default_factory=dict)
    """The text of each cell's pyperf file."""
    stacks: Mapping[str, str] = field(default_factory=dict)
    """`cell, profiler` -> the text of a file of folded stacks."""


def material_of(store: Store) -> Material:
    """Read what the exports of a run need."""
    run = store.run
    files = {cell: store.pyperf_file(cell) for cell in run.cells}
    suites = {cell: read_text(file) for cell, file in files.items() if file.exists()}
    profiled = dict.fromkeys(profile.cell for profile in store.profiles())
    folded = ((cell, file) for cell in profiled for file in sorted(store.profile_folder(cell).glob("*.folded")))
    return Material(
        view(run, store.records()), suites, {f"{cell.key}, {file.stem}": read_text(file) for cell, file in folded}
    )


@dataclass(frozen=True)
class Export:
    """A file in another tool's format."""

    text: str
    left_out: int = 0
    """Number of planned cells that the file leaves out."""
