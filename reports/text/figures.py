"""Numbers -> the text of the report: figures, sheets and sections. Templates only lay them out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from zoomgrad.reports.plot import Drawing
from zoomgrad.results import units
from zoomgrad.results.record import BASELINE


@dataclass(frozen=True)
class Bar:
    """A bar drawn with a figure, as fractions of the space for bars. The style sheet colours its kind."""

    kind: str
    start: float
    length: float

    @property
    def style(self) -> str:
        """CSS for its place."""
        start, end = (100 * min(max(place, 0.0), 1.0) for place in (self.start, self.start + self.length))
        return f"left:{start:.1f}%;width:{end - start:.1f}%"


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
    """CSS class: a status, `code` or `steep`."""
    bars: tuple[Bar, ...] = ()
    links: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Sheet:
    """A table as text. The first `names` columns identify a row; the others are figures.

    title: empty if the section has only one sheet.
    """

    title: str
    names: int
    headings: tuple[str, ...]
    rows: tuple[tuple[Figure, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A question about the run, its answer in one line, and the evidence."""

    name: str
    """Anchor on the page: `#compiling`."""
    question: str
    answer: str
    sheets: tuple[Sheet, ...] = ()
    charts: tuple[Drawing, ...] = ()
    notes: tuple[str, ...] = ()
    """How to read the evidence."""


def time(row: Any, column: str) -> Figure:
    """Format a column of seconds in a table's row, with its interval."""
    value, low, high = getattr(row, column), getattr(row, f"{column}_low"), getattr(row, f"{column}_high")
    text = units.duration_interval(low, high)
    return Figure(units.duration(value), text if text != units.ABSENT else "" if math.isnan(value) else "no interval")


def share(value: float) -> str:
    """Format a share: 41 %, 4.2 %, < 0.1 %."""
    if value != value:
        return units.ABSENT
    percent = 100 * value
    return (
        f"{percent:.0f} %" if percent >= 9.95 or percent == 0 else f"{percent:.1f} %" if percent >= 0.05 else "< 0.1 %"
    )


def compile_time(seconds: float) -> str:
    """Format compile time, in seconds over all phases; 0 means that there was nothing to compile."""
    return "none" if seconds == 0 else units.duration(seconds)


def epoch_time(row: Any) -> Figure:
    """Format the time of an epoch with its interval; ≈ marks one that was not run in full."""
    figure = time(row, "epoch_seconds")
    return Figure(f"≈ {figure.text}" if row.extrapolated else figure.text, figure.below)


def bits(row: Any) -> Figure:
    """Format the outcome of a row's proofs: identical, or the declared bound, within which `baseline` varies."""
    if row.bits == "identical":
        return Figure("✓ identical", mark="ok")
    text = str(row.bits).replace("e-0", "e-")
    return Figure(text.replace("within", "varies ≤") if row.engine == BASELINE else text)


def listed(names: Any, most: int = 3) -> str:
    """Join names as a sentence does: `a, b and c`, or `a, b and 4 others`."""
    words = [str(name) for name in names]
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} others"]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
