"""The charts of a report: one file each, here or in a folder below, shown by their `ORDER`.

A chart reads the rows of its subject (`reports.pages.html` knows them by name) and computes no figure of its own.
"""

from __future__ import annotations

import pkgutil
from pathlib import Path
from typing import Protocol, cast

import pandas as pd
from matplotlib.axes import Axes

from reports.discovery import defining


class Chart(Protocol):
    """What a file in one of these folders defines to be a chart."""

    ORDER: int
    SUBJECT: str
    """What its rows are, a name of `pages.html`: "headline" is one workload's rows, measured or not; "trade-off" is the
    published workload's where that was measured, else the same; "losses" and "sequences" are the headline workload's
    curves (`measured.sequences`); "growth" and "across" are made by the section of that name; "samples",
    "anatomy-of-a-step" and "memory-over-time" by `profiling.collector`, `.anatomy` and `.memory_over_time`.
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
    modules = defining(Chart, "draw", __name__, __path__)
    for folder in pkgutil.iter_modules(__path__):
        if folder.ispkg:
            paths = [str(Path(path) / folder.name) for path in __path__]
            modules |= defining(Chart, "draw", f"{__name__}.{folder.name}", paths)
    found = {name: cast(Chart, module) for name, module in modules.items()}
    return dict(sorted(found.items(), key=lambda item: (item[1].ORDER, item[0])))
