"""Numbers -> the text of the report's tables: sections, sheets and figures. Templates only lay them out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from zoomgrad.reports.measured.headline import compiled
from zoomgrad.results import units


@dataclass(frozen=True)
class Bar:
    """A bar drawn with a figure. The style sheet colours its kind."""

    kind: str
    part: float
    """Fraction of the longest bar in its table."""

    @property
    def width(self) -> str:
        """Percentage of the space for bars, clamped to 0 to 100."""
        return f"{100 * min(max(self.part, 0.0), 1.0) if math.isfinite(self.part) else 0.0:.1f}"


@dataclass(frozen=True)
class Link:
    """A file beside the report. `path` is relative to the report and quoted."""

    text: str
    path: str


@dataclass(frozen=True)
class Figure:
    """One entry of a sheet. `below`: its interval, or another remark in small print."""

    text: str
    below: str = ""
    mark: str = ""
    """CSS class: a status, or `steep`."""
    bars: tuple[Bar, ...] = ()
    """Drawn end to end."""
    links: tuple[Link, ...] = ()
    anchor: str = ""
    """Id of a row's name on the page."""


@dataclass(frozen=True)
class Sheet:
    """A table as text. The first `names` columns identify a row.

    title: empty if the section has only one sheet; folded: a page shows only the title until it is clicked.
    """

    title: str
    names: int
    headings: tuple[str, ...]
    rows: tuple[tuple[Figure, ...], ...]
    notes: tuple[str, ...] = ()
    folded: bool = False
    links: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Section:
    """A part of the report: its sheets, and a lead that explains them."""

    name: str
    """Anchor on the page: `#growth-table`."""
    title: str
    lead: str
    sheets: tuple[Sheet, ...]


def time(row: Any, column: str) -> Figure:
    """Format a column of seconds in a table's row, with its interval."""
    value, low, high = _bounded(row, column)
    return Figure(units.duration(value), _interval(value, units.duration_interval(low, high)))


def ratio(row: Any, column: str) -> Figure:
    """Format a column of ratios in a table's row, with its interval."""
    value, low, high = _bounded(row, column)
    # baseline over itself is 1 by definition.
    return Figure(units.ratio(value), "" if low == high == 1 else _interval(value, units.ratio_interval(low, high)))


def share(value: float) -> str:
    """Format a share: 41 %, 4.2 %, < 0.1 %."""
    if value != value:
        return units.ABSENT
    percent = 100 * value
    return (
        f"{percent:.0f} %" if percent >= 9.95 or percent == 0 else f"{percent:.1f} %" if percent >= 0.05 else "< 0.1 %"
    )


def share_figure(value: float, kind: str, longest: float = 1.0, below: str = "") -> Figure:
    """Format a share with its bar. longest: the share that fills the space for bars."""
    return Figure(share(value), below, bars=(Bar(kind, value / longest),) if longest > 0 else ())


def compile_time(seconds: float) -> str:
    """Format compile time, in seconds over all phases; 0 means that there was nothing to compile."""
    return compiled(seconds)


def approximate(text: str, extrapolated: bool) -> str:
    """Mark the time of an epoch that was not run in full with ≈."""
    return f"≈ {text}" if extrapolated else text


def _bounded(row: Any, column: str) -> tuple[float, float, float]:
    return getattr(row, column), getattr(row, f"{column}_low"), getattr(row, f"{column}_high")


def _interval(value: float, text: str) -> str:
    return "no interval" if text == units.ABSENT and not math.isnan(value) else text.replace(units.ABSENT, "")
