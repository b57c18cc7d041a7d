"""Figures -> text: what a table of the report is made of. Templates only lay it out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from results import units


@dataclass(frozen=True)
class Bar:
    """A part of a figure, drawn beside it; the style sheet colours its kind."""

    kind: str
    part: float
    """Of the longest bar of its table."""

    @property
    def width(self) -> str:
        """In percent of the room for bars, whatever the figure is."""
        return f"{100 * min(max(self.part, 0.0), 1.0) if math.isfinite(self.part) else 0.0:.1f}"


@dataclass(frozen=True)
class Link:
    """A file beside the report; `path` is relative to it and quoted."""

    text: str
    path: str


@dataclass(frozen=True)
class Figure:
    """A figure, and its interval or why it has none."""

    text: str
    below: str = ""
    mark: str = ""
    """What the page's style sheet sets apart: a status, `steep`."""
    bars: tuple[Bar, ...] = ()
    """Drawn end to end."""
    links: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Sheet:
    """A table as text; the first `names` columns say what a row is about.

    title: empty where the sheet is its section's only one; folded: a page shows only the title until it is asked.
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
    """A part of the report: its sheets, and what a reader must know to read them."""

    name: str
    """Its place on the page: `#growth-table`."""
    title: str
    lead: str
    sheets: tuple[Sheet, ...]


def time(row: Any, column: str) -> Figure:
    """Seconds of a table's row, with their interval."""
    value, low, high = _bounded(row, column)
    return Figure(units.duration(value), _interval(value, units.duration_interval(low, high)))


def ratio(row: Any, column: str) -> Figure:
    """A ratio of a table's row, with its interval."""
    value, low, high = _bounded(row, column)
    # baseline over itself is 1 by definition.
    return Figure(units.ratio(value), "" if low == high == 1 else _interval(value, units.ratio_interval(low, high)))


def share(value: float) -> str:
    """A share as text: 41 %, 4.2 %, < 0.1 %."""
    if value != value:
        return units.ABSENT
    percent = 100 * value
    return (
        f"{percent:.0f} %" if percent >= 9.95 or percent == 0 else f"{percent:.1f} %" if percent >= 0.05 else "< 0.1 %"
    )


def share_figure(value: float, kind: str, longest: float = 1.0, below: str = "") -> Figure:
    """A share with its bar; `longest` is the share of a bar as long as there is room."""
    return Figure(share(value), below, bars=(Bar(kind, value / longest),) if longest > 0 else ())


def compile_time(seconds: float) -> str:
    """Seconds of all phases; 0 says that there was nothing to compile."""
    return "nothing" if seconds == 0 else units.duration(seconds)


def approximate(text: str, extrapolated: bool) -> str:
    """An epoch's time, marked where it was not run whole."""
    return f"≈ {text}" if extrapolated else text


def _bounded(row: Any, column: str) -> tuple[float, float, float]:
    return getattr(row, column), getattr(row, f"{column}_low"), getattr(row, f"{column}_high")


def _interval(value: float, text: str) -> str:
    return "no interval" if text == units.ABSENT and not math.isnan(value) else text.replace(units.ABSENT, "")
