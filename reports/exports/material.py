"""What an export receives and returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from zoomgrad.reports.view import View
from zoomgrad.results.record import Cell


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


@dataclass(frozen=True)
class Export:
    """A file in another tool's format."""

    text: str
    left_out: int = 0
    """Number of planned cells that the file leaves out."""
