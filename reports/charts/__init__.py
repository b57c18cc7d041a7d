"""The charts of a report: one file each, found in this folder, shown by their `ORDER`.

A chart reads the rows of its subject (`reports.html` knows them by name) and computes no figure of its own.
"""

from __future__ import annotations

from typing import Protocol, cast

import pandas as pd
from matplotlib.axes import Axes

from reports.discovery import defining


class Chart(Protocol):
    """What a file in this folder defines to be a chart."""

    ORDER: int
    SUBJECT: str
    """What its rows are: "headline", one workload's rows, measured or not; "trade-off", those of the published workload
    where it was measured, else the same; "losses" and "sequences", that workload's curves, see `reports.sequences`;
    "growth", see `reports.growth.points`; "samples", see `reports.collector.samples`; "anatomy-of-a-step", see
    `reports.anatomy.parts`; "memory-over-time", see `reports.memory_over_time.points`; "across", see `reports.across`.
    """

    def title(self, table: pd.DataFrame) -> str:
        """The finding, in words, from the data."""

    def caption(self, table: pd.DataFrame) -> str:
        """How to read it."""

    def size(self, table: pd.DataFrame) -> tuple[float, float]:
        """Width and height in inches."""

    def draw(self, table: pd.DataFrame, axes: Axes) -> None:
        """Draw it."""


def charts() -> dict[str, Chart]:
    """Every chart by its file's name, in order."""
    found = {name: cast(Chart, module) for name, module in defining(Chart, "draw", __name__, __path__).items()}
    return dict(sorted(found.items(), key=lambda item: (item[1].ORDER, item[0])))
