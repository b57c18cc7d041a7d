"""The style that all charts share: one palette, one colour an engine, one shape an interpreter.

Black means "the page's text colour": `svg` turns it into `currentColor`, so a chart follows light and dark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from results import units

TEXT = "black"
MUTED = "#808080"
HATCH = "////"
EDGE = (Stroke(linewidth=2.0, foreground=TEXT, alpha=0.45), Normal())
"""Around a curve, so that a dark one is seen on a dark page and a pale one on a white page."""

Colour = tuple[float, float, float]

# Okabe and Ito, "Color Universal Design", 2008, without black and yellow, which vanish on dark and on white; in an
# order in which neighbours on the ladder are far apart, from one round to the next too.
_PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_ROUNDS = ((0.0, 0.0), (1.0, 0.5), (0.0, 0.45), (1.0, 0.75), (0.0, 0.7))
"""Of each round through the palette: towards white (1) or black (0), and how far."""
_LINES: tuple[Literal["-", "--", ":", "-."], ...] = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")

PYTHON, NATIVE, COLLECTOR = "#56b4e9", "#e69f00", "#d55e00"
"""Whose code a sample fell in; of the palette, and light enough for dark text."""


def shade(colour: str, towards_white: float) -> str:
    """A paler colour."""
    red, green, blue = (part + (1 - part) * towards_white for part in to_rgb(colour))
    return to_hex((red, green, blue))


def engine_colour(table: pd.DataFrame, engine: str) -> Colour:
    """The engine's colour in every chart of a run, by its place on the ladder."""
    return series_colour(list(table["engine"].cat.categories).index(engine))


def ink(colour: Any) -> str:
    """Ink that stays readable on a colour in both themes: by relative luminance, with the weights of Rec. 709."""
    luminance = sum(part * weight for part, weight in zip(to_rgb(colour), (0.2126, 0.7152, 0.0722), strict=True))
    return "#ffffff" if luminance < 0.5 else "#101010"


def series_colour(index: int) -> Colour:
    """The colour of the so many-th of several series; paler, then darker in later rounds through the palette."""
    towards, share = _ROUNDS[index // len(_PALETTE) % len(_ROUNDS)]
    red, green, blue = (part + (towards - part) * share for part in to_rgb(_PALETTE[index % len(_PALETTE)]))
    return red, green, blue


def interpreter_marker(table: pd.DataFrame, interpreter: str) -> str:
    """The interpreter's shape."""
    return series_marker(list(table["interpreter"].cat.categories).index(interpreter))


def series_marker(index: int) -> str:
    """The shape of the so many-th of several series."""
    return _MARKERS[index % len(_MARKERS)]


def interpreter_line(table: pd.DataFrame, interpreter: str) -> Literal["-", "--", ":", "-."]:
    """The interpreter's kind of line."""
    return _LINES[list(table["interpreter"].cat.categories).index(interpreter) % len(_LINES)]


def log_seconds(axes: Axes, which: str, *, low: float, high: float) -> None:
    """A logarithmic axis of seconds from low to high, its ticks written as people write times."""
    log_axis(axes, which, low=low, high=high, text=tick)


def log_axis(axes: Axes, which: str, *, low: float, high: float, text: Callable[[float], str]) -> None:
    """A logarithmic axis from low to high with a tick a decade, or more where that would be fewer than three."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)
    decades = [10.0**power for power in range(-9, 14)]
    ticks = [value for value in decades if low <= value <= high]
    if len(ticks) < 3:
        ticks = [value * part for value in decades for part in (1, 2, 5) if low <= value * part <= high]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_formatter(NullFormatter())
    axes.grid(True, axis="x" if which == "x" else "y", color=MUTED, alpha=0.3, linewidth=0.6)
    axes.set_axisbelow(True)


def tick(seconds: float) -> str:
    """Seconds as an axis says them: 10 ms, 1,000 s."""
    return f"{seconds:,.0f} s" if seconds >= 1 else _short(units.duration(seconds))


def bytes_tick(size: float) -> str:
    """Bytes as an axis says them: 100 MB."""
    return _short(units.size(size))


def _short(text: str) -> str:
    """Without the zeros that `units` writes for three significant digits."""
    return text.replace(".00", "").replace(".0", "")


def bare(axes: Axes, *keep: str) -> None:
    """Leave only the named spines."""
    for name, spine in axes.spines.items():
        spine.set_visible(name in keep)


def nothing_to_draw(axes: Axes, text: str) -> None:
    """Say why a chart is empty."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)


def error_bars(row: Any, column: str) -> list[list[float]] | None:
    """Distances below and above a row's figure, as matplotlib takes them; None without an interval."""
    value, low, high = (float(getattr(row, name)) for name in (column, f"{column}_low", f"{column}_high"))
    return None if low != low or high != high else [[max(value - low, 0.0)], [max(high - value, 0.0)]]
