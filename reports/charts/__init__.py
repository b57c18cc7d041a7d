"""The charts of a report: one module each, here or in a subfolder, shown in the order of their `ORDER`.

A chart reads the rows of its subject, which `reports.pages.html` finds by name, and computes no figures. Figures come
from `reports.measured`, `reports.sections` and `reports.profiling`.
"""

from __future__ import annotations

import pkgutil
from pathlib import Path
from typing import Protocol, cast

import pandas as pd
from matplotlib.axes import Axes

from zoomgrad.reports.discovery import defining


class Chart(Protocol):
    """What a module in one of these folders must define to be a chart."""

    ORDER: int
    SUBJECT: str
    """Name of the chart's rows in `pages.html`. "headline": all rows of the headline workload, measured or not.
    "sequences": values of the workload on which most cells change (`measured.sequences`). "peers": a map of networks
    of several widths, if the run has one. "anatomy-of-a-step": made by `profiling.anatomy`, drawn for the docs only.
    """

    def title(self, table: pd.DataFrame) -> str:
        """Return the chart's finding as a phrase made from the data."""

    def caption(self, table: pd.DataFrame) -> str:
        """Return how to read the chart."""

    def size(self, table: pd.DataFrame) -> tuple[float, float]:
        """Return width and height in inches."""

    def draw(self, table: pd.DataFrame, axes: Axes) -> None:
        """Draw the rows on the axes."""


def charts() -> dict[str, Chart]:
    """Return every chart by its file name, in order."""
    modules = defining(Chart, "draw", __name__, __path__)
    for folder in pkgutil.iter_modules(__path__):
        if folder.ispkg:
            paths = [str(Path(path) / folder.name) for path in __path__]
            modules |= defining(Chart, "draw", f"{__name__}.{folder.name}", paths)
    found = {name: cast(Chart, module) for name, module in modules.items()}
    return dict(sorted(found.items(), key=lambda item: (item[1].ORDER, item[0])))
